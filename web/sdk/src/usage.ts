// What a history sums up: how long jobs waited and ran, what they used, why and how they ended; see "Usage" and "Ends" in wire.md.

import { answerTo } from './asked.ts';
import type { PastQuery } from './history.ts';
import { historyPath, pastPage } from './historypath.ts';
import type { Kubecast } from './kubecast.ts';
import { isJsonObject, text, time, type JsonObject, type KubeObject } from './object.ts';
import type { Resource } from './resource.ts';

/** How long jobs did something, in seconds: half of them at most, nine of ten at most, and the longest. */
export interface Spread {
  /** Of how many jobs it is known, which may be few of all. */
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly max: number;
}

/** What the jobs with one key did and used in one step of time. */
export interface Usage {
  readonly key: string;
  /** Where its step begins, in milliseconds since the epoch; undefined: all of the time is one. */
  readonly from: number | undefined;
  /** How many were created in it. */
  readonly jobs: number;
  /** Of those that ran and of which it is known; null: of none. */
  readonly waitedSeconds: Spread | null;
  readonly ranSeconds: Spread | null;
  /** What their pods requested, times how long they held it within the step. */
  readonly cpuHours: number;
  /** In GiB · h. */
  readonly memoryHours: number;
  readonly gpuHours: number;
  /** Of how many of the jobs nobody knows what they used, so that the hours are without it. */
  readonly hoursUnknown: number;
}

/** How many jobs with one key came to an end in one step of time. A job that was opened again counts at each of its ends. */
export interface Ends {
  readonly key: string;
  /** Where its step begins, in milliseconds since the epoch; undefined: all of the time is one. */
  readonly from: number | undefined;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** Which jobs are counted, and how these are told apart. */
export interface EndsQuery extends Pick<PastQuery, 'namespace' | 'name' | 'cluster' | 'owner' | 'queues' | 'uid' | 'since' | 'until'> {
  /** What a `key` is; the namespace if it is left out. Of `cause` it is the reason of a {@link Cause}, and empty of what ended well, or nobody knows why. */
  readonly by?: 'namespace' | 'owner' | 'queue' | 'resource' | 'cause' | undefined;
  /** The length of a step, from a minute on (`1h`). It takes `since`, where the first one begins. */
  readonly step?: string | undefined;
}

/** The same of usage, which can also be told apart by the jobs' states. */
export interface UsageQuery extends Omit<EndsQuery, 'by'>, Pick<PastQuery, 'states' | 'causes'> {
  /** What a `key` is; the namespace if it is left out. Of `cause` it is the reason of a {@link Cause}, and empty of jobs that ended well, or not yet, or nobody knows why. */
  readonly by?: EndsQuery['by'] | 'state';
}

/**
 * What jobs used, by step and key. Rejects with an {@link AskedError}; its status is 404 if no history of these is kept.
 *
 * ```ts
 * const lost = await pastUsage(kc, jobs, { by: 'cause', since: '168h' });
 * ```
 */
export function pastUsage(kc: Kubecast, resource: Resource<KubeObject>, query: UsageQuery): Promise<readonly Usage[]> {
  return summedUp(kc, resource, query, { view: 'usage', state: query.states?.join(), cause: query.causes?.join() }, (data) => ({
    ...placeOf(data),
    jobs: Number(data.jobs),
    waitedSeconds: spreadOf(data.waitedSeconds),
    ranSeconds: spreadOf(data.ranSeconds),
    cpuHours: Number(data.cpuHours),
    memoryHours: Number(data.memoryHours),
    gpuHours: Number(data.gpuHours),
    hoursUnknown: Number(data.hoursUnknown ?? 0),
  }));
}

/** How jobs ended, by step and key; a step in which none did is not there. Rejects as {@link pastUsage}. */
export function pastEnds(kc: Kubecast, resource: Resource<KubeObject>, query: EndsQuery): Promise<readonly Ends[]> {
  return summedUp(kc, resource, query, { view: 'ends' }, (data) => ({
    ...placeOf(data),
    succeeded: Number(data.succeeded),
    failed: Number(data.failed),
    cancelled: Number(data.cancelled),
  }));
}

async function summedUp<T>(kc: Kubecast, resource: Resource<KubeObject>, query: UsageQuery, asked: Readonly<Record<string, string | undefined>>, read: (data: JsonObject) => T): Promise<readonly T[]> {
  const { owner, queues, uid, since, until, by, step } = query;
  const path = historyPath(resource, query, { ...asked, by, step, owner, queue: queues?.join(), uid, since, until });
  return pastPage(await answerTo(kc, path), read).items;
}

const placeOf = (data: JsonObject): Pick<Usage, 'key' | 'from'> => ({ key: text(data.key), from: time(data.from) });

const spreadOf = (data: unknown): Spread | null => (isJsonObject(data) ? (data as unknown as Spread) : null);
