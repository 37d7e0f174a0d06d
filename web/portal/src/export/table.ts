// What the tables of a page offer to take away.

import { AskedError, pastJobs, pathOf, type Kubecast, type KubeObject, type PastJob, type PastQuery, type Query, type Resource } from '@kubecast/sdk';
import { ranLonger } from '../age/Elapsed.tsx';
import { t as ofClusters } from '../clusters/texts.ts';
import { jobs } from '../job/resources.ts';
import { cellsOf, tableForm } from '../kinds/columns.ts';
import { saidOf } from '../state/said.ts';
import { stateName } from '../state/texts.ts';
import { secondsCell, timeCell, type Cell } from './csv.ts';
import { objectsOf, pagesOf } from './read.ts';
import type { Exportable } from './save.ts';
import { t } from './texts.ts';

const fileOf = (name: string, namespace: string): string => [name, namespace].filter(Boolean).join('-');

export interface Lines<R> {
  readonly header: readonly string[];
  readonly line: (row: R, past?: PastJob) => readonly Cell[];
  /** Of jobs: by what the history knows one. Each line is given what it knows. */
  readonly uidOf?: (row: R) => string;
}

/** The history is asked for so many jobs at once; the gateway takes no more. */
const atOnce = 100;

async function* linesOf<R>(kc: Kubecast, namespace: string, rows: Iterable<R> | AsyncIterable<R>, { line, uidOf }: Lines<R>, signal: AbortSignal): AsyncGenerator<readonly Cell[]> {
  let some: R[] = [];
  let kept = uidOf !== undefined;
  const known = async (): Promise<ReadonlyMap<string, PastJob>> => {
    if (!uidOf || !kept || some.length === 0) return new Map();
    try {
      const { items } = await pastJobs(kc, jobs, { namespace, uid: some.map(uidOf).join(), limit: atOnce }, { signal });
      return new Map(items.map((job) => [job.uid, job]));
    } catch (error) {
      if (!(error instanceof AskedError && error.status === 404)) throw error;
      kept = false; // no history is kept
      return new Map();
    }
  };
  const told = async (): Promise<(readonly Cell[])[]> => {
    const past = await known();
    const lines = some.map((row) => line(row, uidOf && past.get(uidOf(row))));
    some = [];
    return lines;
  };
  for await (const row of rows) {
    some.push(row);
    if (!kept || some.length === atOnce) yield* await told();
  }
  yield* await told();
}

/** Rows that the page has, all of them, in the order in which they are shown. */
export function ofRows<R extends { readonly uid: string }>(kc: Kubecast, resource: Resource<KubeObject>, namespace: string, rows: () => readonly R[], lines: Lines<R>): Exportable {
  return {
    file: fileOf(resource.plural, namespace),
    csv: async function* (signal) {
      yield lines.header;
      yield* linesOf(kc, namespace, rows(), lines, signal);
    },
    yaml: async function* (signal) {
      const shown = new Set(rows().map(({ uid }) => uid));
      for await (const object of objectsOf(kc, pathOf(resource, { namespace }), signal)) if (shown.has(object.metadata.uid)) yield object;
    },
  };
}

/** Rows of which the page has no more than what is in sight: what it asks of the gateway, whole. */
export function ofQuery<T extends KubeObject, R>(kc: Kubecast, resource: Resource<T>, query: Query, sort: readonly string[], read: (object: T) => R, lines: Lines<R>): Exportable {
  const sorted = (one: Query): string => {
    const path = pathOf(resource, one);
    return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ sort: sort.join() }).toString()}`;
  };
  return {
    file: fileOf(resource.plural, query.namespace ?? ''),
    csv: async function* (signal) {
      yield lines.header;
      const rows = async function* (): AsyncGenerator<R> {
        for await (const object of objectsOf(kc, sorted(query), signal, JSON.parse)) yield read(object as T);
      };
      yield* linesOf(kc, query.namespace ?? '', rows(), lines, signal);
    },
    yaml: (signal) => objectsOf(kc, sorted({ ...query, fields: undefined }), signal),
  };
}

/** Any kind, by its own columns. */
export function ofKind(kc: Kubecast, resource: Resource<KubeObject>, namespaced: boolean, query: Query): Exportable {
  const path = pathOf(resource, query);
  return {
    file: fileOf(resource.plural, query.namespace ?? ''),
    csv: async function* (signal) {
      let first = true;
      for await (const page of pagesOf(kc, path, signal, tableForm)) {
        const { columns, rows } = cellsOf(page);
        if (first) yield [t.columns.name, ...(namespaced ? [t.columns.namespace] : []), ...columns.map(({ name }) => name), t.columns.created];
        first = false;
        for (const { name, namespace, created, cells } of rows.values()) yield [name, ...(namespaced ? [namespace] : []), ...cells, created];
      }
    },
    yaml: (signal) => objectsOf(kc, path, signal),
  };
}

/** Jobs of the history, all of them that are asked for, not only those that were leafed through. */
export function ofHistory(clusters: readonly { readonly kc: Kubecast }[], query: PastQuery): Exportable {
  const several = clusters.length > 1;
  const { name, namespace, state, detail, message, owner, queue, attempt, created, started, ended, ran, longer, cpuHours, memoryHours, gpuHours, podFailures, preemptions, cause } = t.columns;
  return {
    file: fileOf('history', query.namespace ?? ''),
    csv: async function* (signal) {
      yield [...(several ? [ofClusters.cluster] : []), name, namespace, state, detail, message, owner, queue, attempt, created, started, ended, ran, longer, cpuHours, memoryHours, gpuHours, podFailures, preemptions, cause];
      for await (const page of pagesOfHistory(clusters, query, signal)) {
        for (const job of page) {
          yield [
            ...(several ? [job.cluster] : []), job.name, job.namespace, stateName(job.state), job.reason, job.message, job.owner, job.queue, job.attempt,
            timeCell(job.createdAt), timeCell(job.startedAt), timeCell(job.endedAt), secondsCell(job.ran), ranLonger(job) ? t.columns.yes : '',
            job.hours?.cpu, job.hours?.memory, job.hours?.gpu, job.podFailures ?? undefined, job.preemptions ?? undefined, job.cause && saidOf(job.cause),
          ];
        }
      }
    },
  };
}

/** One cluster's after another's. If one cannot be read, none can: a file that looks whole and is not would be worse. */
async function* pagesOfHistory(clusters: readonly { readonly kc: Kubecast }[], query: PastQuery, signal: AbortSignal): AsyncGenerator<readonly PastJob[]> {
  for (const { kc } of clusters) {
    for (let rest: string | undefined = ''; rest !== undefined; ) {
      const page: Awaited<ReturnType<typeof pastJobs>> = await pastJobs(kc, jobs, { ...query, limit: 1_000, continue: rest || undefined }, { signal });
      signal.throwIfAborted();
      yield page.items;
      rest = page.continue || undefined;
    }
  }
}
