/**
 * A gateway for the tests of pages: in memory as a `fetch`, or on a port of Node. It has objects, of which it tells as they change, and
 * misbehaves when it is told to.
 *
 * ```ts
 * const gateway = new MockGateway();
 * const kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
 * const job = gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a' } });
 * gateway.fault.cut(); // every stream breaks, and goes on from where it was
 * ```
 *
 * - {@link MockGateway}: who may see what (`permit`), what goes wrong (`fault`, and by hand `away`, `sabotage`, `refuseWith`, `unavailable`, `epoch`).
 * - {@link MockFaults}: streams that break, a cluster that is away, answers that are late, tokens that count no more, positions that are too old.
 * - {@link MockCluster}: its objects (`put`, `remove`), and how far back its memory reaches (`compact`).
 * - {@link MockInbox}, {@link MockPast}: what is told once and by number: notifications, transitions of jobs.
 * - {@link MockLogs}: what containers write (`logs` of the gateway).
 * - {@link MockQueue}: a queue and who waits in it (`queue` of the gateway).
 * - {@link MockWorkload}: jobs and pods that come and go by themselves; {@link MockWorld}: with all that belongs to them.
 * - {@link inMemory}: a `fetch` that any handler of requests answers.
 * - {@link ScriptedFetch}: where that is not enough: answers that a test writes by hand, byte by byte.
 *
 * What it tells is what the wire contract says of streams, lists, live pages and counts, held to it by the conformance suite. What it lacks it refuses in words; {@link contract} says what that is.
 *
 * @packageDocumentation
 */

export { MockCluster, type Change, type Draft } from './cluster.ts';
export { frame, ScriptedFetch, type ScriptedBody, type ScriptedRequest } from './fetch.ts';
export { contract, type Address, type Part } from './contract.ts';
export { type Heal, MockFaults } from './fault.ts';
export { type Column } from './forms.ts';
export { MockGateway, type Fallback } from './gateway.ts';
export { MockLogs, type Line, type OfContainer } from './logs.ts';
export { inMemory, type MockRequest, type MockResponse } from './memory.ts';
export { MockStream, type StreamOptions } from './stream.ts';
export { MockPast, type PastAsker } from './past.ts';
export { type MockUser } from './rights.ts';
export { MockInbox, MockLog, MockQueue, type ToldQueue } from './told.ts';
export { MockWorkload } from './workload.ts';
export { MockWorld } from './world.ts';
