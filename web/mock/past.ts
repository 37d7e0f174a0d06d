// The history of the mock's jobs: how each is, the states through which it came, the lives of its pods, and what these come to.

import { BadQuery, durationOf, whole } from './query.ts';
import type { MockCluster } from './cluster.ts';
import { MockLog, sealed, type Entry } from './told.ts';

export type PastJob = { readonly uid: string; readonly name: string; readonly namespace: string; readonly resource: string; readonly state: string; readonly [key: string]: unknown };

type Elapsed = { readonly seconds: number; readonly since: string | null } | null;

/** Who asks for something of the history, and where. */
export interface PastAsker {
  /** Such as `jobs.batch`; undefined: whatever there is. */
  readonly resource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** The caller, who is `me`. */
  readonly username?: string | undefined;
  /** What the caller may see; undefined: every namespace. */
  readonly namespaces?: readonly string[] | undefined;
  /** The caller may read logs. */
  readonly logs?: boolean | undefined;
}

const views: Readonly<Record<string, readonly string[]>> = {
  jobs: ['state', 'owner', 'queue', 'uid', 'parent', 'cause', 'search', 'since', 'until', 'limit', 'continue'],
  transitions: ['state', 'owner', 'queue', 'uid', 'cause', 'search', 'since', 'until', 'limit', 'continue'],
  runs: ['owner', 'queue', 'uid', 'since', 'until', 'limit', 'continue'],
  usage: ['state', 'owner', 'queue', 'uid', 'cause', 'since', 'until', 'by', 'step'],
  ends: ['owner', 'queue', 'uid', 'since', 'until', 'by', 'step'],
  spec: ['uid'],
  log: ['uid', 'pod'],
};

const ends = new Set(['Succeeded', 'Failed', 'Cancelled', 'Deleted']);
const waits = new Set(['Submitted', 'Queued', 'Pending', 'Suspended']);
const ofTransitions = ['cluster', 'resource', 'namespace', 'namespaceUID', 'name', 'uid', 'resourceVersion', 'late', 'attempt', 'reason', 'message', 'owner', 'cause'];

export class MockPast extends MockLog {
  readonly jobs = new Map<string, PastJob>();
  /** By the pod's uid. */
  readonly runs = new Map<string, Readonly<Record<string, unknown>>>();
  /** Each change of a run. */
  readonly lives = new MockLog();
  /** What is kept of jobs that have ended, by uid. */
  readonly kept = new Map<string, { readonly spec?: object; readonly log?: string; readonly podLogs?: Readonly<Record<string, string>> }>();

  #cluster: MockCluster | undefined;

  /** @internal The objects by whose names jobs and pods are known. */
  knows(cluster: MockCluster): void {
    this.#cluster = cluster;
  }

  /** The uid that is meant by a name: of the object that has it, else of what was recorded last under it. */
  #uidOf(name: string, { resource = 'jobs.batch', namespace = 'team-a' }: { readonly resource?: string; readonly namespace?: string }): string {
    const [plural = '', ...group] = resource.split('.');
    const object = this.#cluster?.list(plural, group.join('.')).find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    const recorded = [...this.jobs.values()].filter((job) => job.name === name && job.resource === resource && job.namespace === namespace).at(-1);
    return object?.metadata.uid ?? recorded?.uid ?? (this.jobs.has(name) ? `${namespace}/${name}` : name);
  }

  /**
   * A job comes to a state. `more` is of the job, and of the transition; `at` is now if it is not said. Its `uid` is that of the object of this name, if there is
   * one, in `namespace` (`team-a`) of `resource` (`jobs.batch`).
   */
  record(name: string, state: string, more: Readonly<Record<string, unknown>> & { readonly uid?: string; readonly at?: string; readonly namespace?: string; readonly resource?: string } = {}): void {
    const { at = new Date().toISOString(), ...rest } = more;
    const uid = more.uid ?? this.#uidOf(name, more);
    const before = this.jobs.get(uid);
    const job = {
      ...{ cluster: 'default', resource: 'jobs.batch', namespace: 'team-a', namespaceUID: null, name, uid, owner: 'mara', queue: '', attempt: 1, createdAt: at, startedAt: null, endedAt: null, deletedAt: null },
      ...{ durations: {}, waited: { seconds: 0, since: at }, ran: null, requests: {}, reasons: [], progress: null, parent: null, children: 0, log: false, spec: false },
      ...{ hours: null, podFailures: 0, preemptions: 0, podCount: 0 },
      ...before,
      ...{ reason: '', message: '', cause: null, state, since: at, ...(before && timesOf(before, state, at)), ...rest },
      ...(state === 'Running' && { startedAt: before?.startedAt ?? at, ran: { seconds: secondsOf(before?.ran), since: at } }),
      ...(ends.has(state) && { [state === 'Deleted' ? 'deletedAt' : 'endedAt']: at, ...rest }),
    };
    this.jobs.set(uid, job);
    const of = Object.fromEntries(ofTransitions.map((key) => [key, (job as Record<string, unknown>)[key] ?? { late: false, resourceVersion: '0', namespaceUID: null, cause: null }[key] ?? null]));
    this.add('transition', { ...of, seq: String(this.seq + 1), from: before?.state ?? null, to: state, at, observedAt: at, late: false, ...rest });
  }

  /** The life of a pod of a job is, or has become, so. @param ofJob its uid, or its name */
  run(ofJob: string, name: string, more: Readonly<Record<string, unknown>> & { readonly uid?: string; readonly namespace?: string } = {}): void {
    const job = this.jobs.has(ofJob) ? ofJob : this.#uidOf(ofJob, more);
    const of = this.jobs.get(job);
    const uid = more.uid ?? name;
    const seq = sealed('run', this.lives.seq + 1);
    const run = {
      ...{ cluster: 'default', namespace: of?.namespace ?? 'team-a', namespaceUID: null, job: { resource: of?.resource ?? 'jobs.batch', name: of?.name ?? ofJob, uid: job }, owner: of?.owner ?? 'mara', queue: of?.queue ?? '', name, uid },
      ...{ index: '', node: '', createdAt: new Date().toISOString(), scheduledAt: null, startedAt: null, endedAt: null, late: false, restarts: 0, reason: '', message: '', container: '', exitCode: null, signal: null },
      ...{ requests: {}, devices: [] },
      ...this.runs.get(uid),
      ...more,
      seq,
    };
    this.runs.set(uid, run);
    this.lives.add('run', run);
  }

  /** Keeps what a job was told to do, the end of its log, and those of its pods by their uids. @param ofJob its uid, or its name */
  keep(ofJob: string, what: { readonly namespace?: string; readonly spec?: object; readonly log?: string; readonly podLogs?: Readonly<Record<string, string>> }): void {
    const uid = this.jobs.has(ofJob) ? ofJob : this.#uidOf(ofJob, what);
    this.kept.set(uid, what);
    const job = this.jobs.get(uid);
    if (job) this.jobs.set(uid, { ...job, spec: what.spec !== undefined, log: what.log !== undefined });
  }

  /** Whether the history of a kind is kept. */
  keeps(resource: string): boolean {
    return resource === 'jobs.batch' || [...this.jobs.values()].some((job) => job.resource === resource);
  }

  /** A page, or what a history is summed up to. Throws {@link BadQuery}. */
  list(query: URLSearchParams, asker: PastAsker = {}): object {
    const view = viewOf(query);
    if (view === 'usage' || view === 'ends') return { items: this.#sums(view, query, asker), continue: '' };
    const all = view === 'transitions' ? this.entries.map(({ data }) => data as Row) : ([...(view === 'runs' ? this.runs : this.jobs).values()] as Row[]);
    const asked = askedOf(view, query, asker);
    const found = all.filter(asked).reverse();
    if (view !== 'transitions') found.sort((a, b) => Date.parse(text(b.createdAt)) - Date.parse(text(a.createdAt)));
    const page = pageOf(found, query, `${view} ${JSON.stringify([asker.resource, asker.namespace, asker.name])}`, (row) => text(view === 'transitions' ? row.seq : row.uid));
    const of = (row: Row): object => {
      if (view === 'transitions') return seen(row, asker);
      if (view === 'runs') return row;
      return { ...upToNow(row), ...(query.has('uid') && !query.get('uid')?.includes(',') && { pods: this.#podsOf(row) }) };
    };
    return { ...page, items: page.items.map(of) };
  }

  /** The newest pods of a job, and behind them those of which a log is kept. */
  #podsOf(row: Row): object[] {
    const pods = [...this.runs.values()].filter(({ job }) => (job as { uid: string }).uid === row.uid).reverse();
    return pods.map((run) => this.#withLog(run, row)).filter((run, n) => n < 100 || 'log' in run);
  }

  /** A pod as it is told with its job. */
  #withLog(run: Readonly<Record<string, unknown>>, { uid }: Row): object {
    return this.kept.get(text(uid))?.podLogs?.[text(run.uid)] === undefined ? run : { ...run, log: true };
  }

  /** What is kept of one job, as it is answered; undefined: nothing, or nothing that the caller may see. */
  keptOf(query: URLSearchParams, asker: PastAsker): { readonly type: string; readonly body: string } | undefined {
    const view = viewOf(query);
    const uid = query.get('uid') ?? '';
    if (uid === '' || asker.name === undefined) throw new BadQuery(`view=${view}: it is of one job, by name and uid`);
    const job = [...this.jobs.values()].find((one) => one.uid === uid && askedOf('jobs', new URLSearchParams(), asker)(one));
    const { spec, log, podLogs } = (job && this.kept.get(uid)) ?? {};
    if (view === 'spec') return spec && { type: 'application/json', body: JSON.stringify(spec) };
    if (asker.logs === false) throw new BadQuery('you may not read logs there', 403);
    const pod = query.get('pod');
    const body = pod === null ? log : podLogs?.[pod];
    return body === undefined ? undefined : { type: 'text/plain; charset=utf-8', body };
  }

  /** What a stream tells: of which numbers, which of them, and in which form. Throws {@link BadQuery}. */
  follow(query: URLSearchParams, asker: PastAsker): { readonly log: MockLog; readonly matches: (entry: Entry) => boolean; readonly shape: (data: object) => object } {
    const view = query.get('view') ?? 'transitions';
    if (view !== 'transitions' && view !== 'runs') throw new BadQuery(`view=${view}: it is no stream`);
    if (query.has('continue')) throw new BadQuery('continue: unknown parameter of an event stream');
    const of = new URLSearchParams([...query].filter(([key]) => key !== 'heartbeat'));
    of.set('view', view);
    viewOf(of);
    const asked = askedOf(view, of, asker);
    return { log: view === 'runs' ? this.lives : this, matches: ({ data }) => asked(data as Row), shape: (data) => (view === 'runs' ? data : seen(data as Row, asker)) };
  }

  #sums(view: 'usage' | 'ends', query: URLSearchParams, asker: PastAsker): object[] {
    const by = query.get('by') ?? 'namespace';
    if (!['namespace', 'owner', 'queue', 'resource', 'cause', ...(view === 'usage' ? ['state'] : [])].includes(by)) throw new BadQuery(`by: ${JSON.stringify(by)} is nothing to sum up by`);
    const step = durationOf('step', query.get('step') ?? '');
    const since = query.has('since') ? timeOf('since', query.get('since') ?? '') : undefined;
    if (step !== undefined && (step < 60_000 || since === undefined)) throw new BadQuery('step: a minute or more, and since is where the first one begins');
    const begin = (at: number): string | null => (since === undefined ? null : new Date(step === undefined ? since : since + Math.floor((at - since) / step) * step).toISOString());
    const groups = new Map<string, { readonly key: string; readonly from: string | null; readonly of: Row[] }>();
    const rows = view === 'ends' ? this.entries.map(({ data }) => data as Row).filter(({ to }) => ['Succeeded', 'Failed', 'Cancelled'].includes(text(to))) : [...this.jobs.values()];
    for (const row of rows.filter(askedOf(view, query, asker))) {
      const key = by === 'cause' ? reasonOf(row.cause) : by === 'queue' ? queueOf(row) : text(row[by]);
      const from = begin(Date.parse(text(view === 'ends' ? row.at : row.createdAt)));
      const group = groups.get(`${from} ${key}`) ?? { key, from, of: [] };
      groups.set(`${from} ${key}`, group);
      group.of.push(row);
    }
    const sorted = [...groups.values()].sort((a, b) => (text(a.from) < text(b.from) ? -1 : text(a.from) > text(b.from) ? 1 : a.key < b.key ? -1 : 1));
    return sorted.map(({ key, from, of }) => ({ key, from, ...(view === 'ends' ? endsOf(of) : usageOf(of)) }));
  }
}

type Row = Readonly<Record<string, unknown>>;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const reasonOf = (cause: unknown): string => text((cause as { reason?: unknown } | null | undefined)?.reason);
const queueOf = ({ queue }: Row): string => text(typeof queue === 'object' ? (queue as { name?: unknown } | null)?.name : queue);
const secondsOf = (elapsed: unknown): number => (elapsed as Elapsed)?.seconds ?? 0;

/** Which view is asked for, once all of the question has a meaning for it. */
function viewOf(query: URLSearchParams): string {
  const view = query.get('view') ?? 'jobs';
  const takes = Object.hasOwn(views, view) ? views[view] : undefined;
  if (!takes) throw new BadQuery(`view: ${JSON.stringify(view)} is none`);
  for (const [key, value] of query) {
    if (key === 'view') continue;
    if (!takes.includes(key)) throw new BadQuery(`${key}: unknown parameter of view=${view}`);
    if (query.getAll(key).length > 1) throw new BadQuery(`${key}: given more than once`);
    if (value.split(',').length > 100) throw new BadQuery(`${key}: more than 100 values`);
  }
  return view;
}

/** What of a history is asked for, and may be seen. */
function askedOf(view: string, query: URLSearchParams, { resource, namespace, name, username, namespaces }: PastAsker): (row: Row) => boolean {
  const one = (key: string): ReadonlySet<string> | undefined => (query.get(key) ? new Set(query.get(key)?.split(',').map((value) => (key === 'owner' && value === 'me' ? (username ?? 'me') : value))) : undefined);
  const [states, owners, queues, uids, parents, causes] = ['state', 'owner', 'queue', 'uid', 'parent', 'cause'].map(one);
  const search = (query.get('search') ?? '').toLowerCase();
  const [since, until] = ['since', 'until'].map((key) => (query.get(key) ? timeOf(key, query.get(key) ?? '') : undefined));
  const when = { jobs: 'since', transitions: 'at', ends: 'at', runs: 'createdAt', usage: 'createdAt' }[view] ?? 'since';
  // Until the caller has a name, each job is theirs.
  const mine = owners?.has('me') && username === undefined;
  return (row) => {
    const of = (view === 'runs' ? row.job : row) as Row;
    const at = Date.parse(text(row[when]));
    return (
      (resource === undefined || of.resource === resource) &&
      (namespace === undefined || row.namespace === namespace) &&
      (name === undefined || of.name === name) &&
      (namespaces === undefined || namespaces.includes(text(row.namespace))) &&
      (states?.has(text(view === 'transitions' ? row.to : row.state)) ?? true) &&
      (!owners || mine === true || owners.has(text(row.owner))) &&
      (queues?.has(queueOf(row)) ?? true) &&
      (uids?.has(text(of.uid)) ?? true) &&
      (parents?.has(text((row.parent as Row | null)?.uid)) ?? true) &&
      (causes?.has(reasonOf(row.cause)) ?? true) &&
      text(row.name).toLowerCase().includes(search) &&
      (since === undefined || at >= since) &&
      (until === undefined || at < until)
    );
  };
}

/** A page goes on behind what it ended with, whatever was written since. A token belongs to its question. */
export function pageOf<T>(all: readonly T[], query: URLSearchParams, question: string, nameOf: (row: T) => string): { items: readonly T[]; continue: string } {
  const limit = whole('limit', query.get('limit') ?? '100', 1, 1_000);
  const own = [...query].filter(([key]) => !['limit', 'continue'].includes(key)).sort();
  const asked = JSON.stringify([question, own]);
  const token = query.get('continue') ?? '';
  const behind = token === '' ? undefined : readToken(token);
  if (behind && behind.asked !== asked) throw new BadQuery('continue: the token is of another question');
  const begin = behind ? all.findIndex((row) => nameOf(row) === behind.last) + 1 : 0;
  const items = all.slice(begin, begin + limit);
  const last = items.at(-1);
  return { items, continue: last !== undefined && begin + items.length < all.length ? btoa(encodeURIComponent(JSON.stringify({ asked, last: nameOf(last) }))) : '' };
}

function readToken(token: string): { readonly asked: string; readonly last: string } {
  try {
    return JSON.parse(decodeURIComponent(atob(token))) as { asked: string; last: string };
  } catch {
    throw new BadQuery('continue: it is no token');
  }
}

function timeOf(key: string, time: string): number {
  const at = /^\d{4}-\d\d-\d\dT/.test(time) ? Date.parse(time) : Date.now() - (durationOf(key, time) ?? NaN);
  if (Number.isNaN(at)) throw new BadQuery(`${key}: ${JSON.stringify(time)} is no time`);
  return at;
}

/** The times of a job that leaves a state. */
function timesOf(before: PastJob, state: string, at: string): object {
  const lasted = Math.max(0, (Date.parse(at) - Date.parse(text(before.since))) / 1_000);
  const durations = before.durations as Readonly<Record<string, number>>;
  const waited = before.waited as Elapsed;
  const ran = before.ran as Elapsed;
  const stopped = (elapsed: Elapsed): Elapsed => elapsed?.since ? { seconds: elapsed.seconds + Math.max(0, (Date.parse(at) - Date.parse(elapsed.since)) / 1_000), since: null } : elapsed;
  return {
    durations: { ...durations, [before.state]: (durations[before.state] ?? 0) + (ends.has(before.state) ? 0 : lasted) },
    waited: waits.has(state) ? waited : stopped(waited),
    ran: stopped(ran),
  };
}

/** A job as it is told: the present state lasts. */
function upToNow(row: Row): Row {
  if (ends.has(text(row.state))) return row;
  const durations = row.durations as Readonly<Record<string, number>>;
  const state = text(row.state);
  return { ...row, durations: { ...durations, [state]: (durations[state] ?? 0) + Math.max(0, (Date.now() - Date.parse(text(row.since))) / 1_000) } };
}

/** Numbers would tell who does not see all how much happens elsewhere. */
function seen(row: Row, { namespaces }: PastAsker): Row {
  return namespaces ? { ...row, seq: sealed('transition', Number(row.seq)) } : row;
}

function endsOf(rows: readonly Row[]): object {
  const count = (state: string): number => rows.filter(({ to }) => to === state).length;
  return { succeeded: count('Succeeded'), failed: count('Failed'), cancelled: count('Cancelled') };
}

function usageOf(rows: readonly Row[]): object {
  const lasted = (elapsed: unknown): number => secondsOf(elapsed) + ((elapsed as Elapsed)?.since ? Math.max(0, (Date.now() - Date.parse(text((elapsed as Elapsed)?.since))) / 1_000) : 0);
  // Of one whose beginning nobody saw, neither is known.
  const ran = rows.filter((row) => row.ran !== null && row.waited !== null);
  const spread = (of: 'waited' | 'ran'): object | null => {
    const all = ran.flatMap((row) => (row[of] ? [lasted(row[of])] : [])).sort((a, b) => a - b);
    const at = (share: number): number => all[Math.max(0, Math.ceil(all.length * share) - 1)] ?? 0;
    return all.length > 0 ? { count: all.length, p50: at(0.5), p90: at(0.9), max: at(1) } : null;
  };
  const sum = (of: string): number => rows.reduce((all, { hours }) => all + Number((hours as Row | null)?.[of] ?? 0), 0);
  return { jobs: rows.length, waitedSeconds: spread('waited'), ranSeconds: spread('ran'), cpuHours: sum('cpu'), memoryHours: sum('memory'), gpuHours: sum('gpu'), hoursUnknown: 0 };
}
