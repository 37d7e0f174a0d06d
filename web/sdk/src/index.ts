/**
 * The client side of Kubecast's event streams: Kubernetes objects, live in a browser, in a worker or in
 * Node. No dependencies, no DOM.
 *
 * - {@link createKubecast}: all watches of a page on one stream, each as long as somebody looks at it. Start here; for React there
 *   are hooks in `@kubecast/sdk/react`.
 * - {@link Session}: the browser's session with the gateway, for those that sign in with a cookie.
 * - {@link watchable}: what the caller may watch, asked rather than found out by being refused.
 * - {@link Client} and {@link Store}: its two halves, for callers that need the events themselves.
 * - {@link FrameParser} and {@link decodeFrame}: bytes to frames, frames to events; pure.
 *
 * @packageDocumentation
 */

export { createKubecast, Kubecast, type KubecastOptions, type Watch, type WatchSnapshot } from './kubecast.ts';
export { attend, type AppStates, type AttendOptions, type Attentive } from './attend.ts';
export { logs, type LogEntry, type LogGap, type LogLine, type LogQuery, type LogRun } from './logs.ts';
export { page, type PagePlace, type PageQuery } from './page.ts';
export { infiniteListOf, type InfiniteList, type InfiniteListQuery, type InfiniteListSnapshot } from './infinitelist.ts';
export type { Grows, Infinite } from './infinite.ts';
export { counts, type Count, type CountQuery } from './counts.ts';
export { find, ready, snapshots } from './ready.ts';
export { dehydrate, hydrate, type Dehydrated } from './hydrate.ts';
export { accessOf, meOf, type Access, type AccessQuery, type Me } from './access.ts';
export { answerTo, AskedError, type Asked, type AskedSnapshot } from './asked.ts';
export { pastOf, type Past, type PastSnapshot } from './past.ts';
export { pastJobs, transitions, type Cause, type Elapsed, type PastJob, type PastQuery, type Transition, type TransitionQuery } from './history.ts';
export type { PastPage } from './historypath.ts';
export { pastLog, pastSpec, type KeptQuery } from './kept.ts';
export { pastRuns, runs, type Run, type RunQuery } from './runs.ts';
export { pastEnds, pastUsage, type Ends, type EndsQuery, type Spread, type Usage, type UsageQuery } from './usage.ts';
export {
  queue,
  queuesOf,
  type ExpectedStart,
  type HiddenJob,
  type Queue,
  type QueuePlace,
  type QueueQuery,
  type QueueResource,
  type Queues,
  type QueuesSnapshot,
  type QueueWithJobs,
  type WaitingJob,
} from './queues.ts';
export { inboxOf, type Inbox, type InboxSnapshot, type JobNotification, type NotificationSettings, type Which } from './notifications.ts';
export type { ColumnOf, FieldOf, Identity, Only, Paths, SortOf } from './paths.ts';
export { defineResource, pathOf, streamPath, type Labels, type Query, type QueryOf, type Resource, type Where, type WhereOf } from './resource.ts';
export { replaceEqualDeep, type Selected, type Selecting } from './select.ts';
export type { Skip, Skippable } from './skip.ts';
export { Client } from './client.ts';
export type { ClientOptions, Share } from './clientoptions.ts';
export type { TokenReason, TokenSource } from './credentials.ts';
export { Session, type Locks, type SessionInfo, type SessionOptions } from './session.ts';
export { mayWatch, watchable, type Watchable, type WatchableOptions } from './me.ts';
export { isFinal, type ConnectionState, type Freshness, type StaleReason, type Status, type Trouble } from './state.ts';
export { Store, type Schedule, type Sink, type Source, type StoreOptions } from './store.ts';
export { WatchedCollection, type Collection, type Snapshot } from './collection.ts';
export { FrameParser, type Frame } from './parser.ts';
export { mergePatch } from './mergepatch.ts';
export {
  decodeFrame,
  UnreadableFrame,
  type BookmarkEvent,
  type ExpiringEvent,
  type FreshnessEvent,
  type GoodbyeEvent,
  type ObjectEvent,
  type PatchedEvent,
  type ResetEvent,
  type StreamEvent,
  type SyncedEvent,
  type UnknownEvent,
  type VisibilityEvent,
} from './events.ts';
export type { JsonObject, KubeObject, ObjectMeta, OwnerReference } from './object.ts';
