// What the palette finds: pages and kinds that are known here, and objects that the gateway is asked for by what was typed.

import { answerTo, AskedError, defineResource, pastJobs, pathOf, type KubeObject } from '@kubecast/sdk';
import { inTurn, type Cluster } from '../clusters/together.ts';
import { endOf, outcomeOf } from '../history/outcome.ts';
import { jobs } from '../job/resources.ts';
import { matches } from '../kinds/KindsPage.tsx';
import type { Kind } from '../kinds/discovery.ts';
import { stateName } from '../state/texts.ts';
import { formatWhen } from '../texts/when.ts';
import { linkToObject, linkToRun, type View } from '../view/view.ts';

export interface Entry {
  readonly href: string;
  /** Tells it from others, where another may have the same address; the address, if it is left out. */
  readonly key?: string;
  readonly label: string;
  /** What tells it from another of its name. */
  readonly detail: string;
}

export interface Group {
  readonly title: string;
  readonly entries: readonly Entry[];
}

/** So many of each group. */
export const most = 10;

export type Sought = Pick<Kind, 'id' | 'group' | 'version' | 'plural' | 'kind'>;

const tables: readonly Sought[] = [
  { id: 'jobs.batch', group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job' },
  { id: 'pods', group: '', version: 'v1', plural: 'pods', kind: 'Pod' },
];

export interface Question {
  readonly text: string;
  readonly kinds: readonly Sought[];
}

/** `deploy web` asks for deployments only, as kubectl does; otherwise jobs, pods and the kind on screen are looked through. */
export function questionOf(typed: string, kinds: readonly Kind[], shown: string): Question {
  const text = typed.trim();
  const [, first = '', rest = ''] = /^(\S+)\s+(.+)$/.exec(text) ?? [];
  const named = first && kinds.find((kind) => names(kind).includes(first.toLowerCase()));
  if (named) return { text: rest, kinds: [named] };
  const chosen = kinds.find(({ id }) => id === shown && !tables.some((one) => one.id === id));
  return { text, kinds: chosen ? [...tables, chosen] : tables };
}

const names = ({ plural, kind, shortNames, id }: Kind): readonly string[] => [plural, kind.toLowerCase(), id, ...shortNames];

/** Kinds that go by what was typed. Those that have a page of their own are found as pages. */
export const kindsFor = (typed: string, kinds: readonly Kind[]): readonly Kind[] =>
  kinds
    .filter((kind) => !tables.some(({ id }) => id === kind.id) && matches(kind, typed))
    .sort((a, b) => a.plural.length - b.plural.length || a.plural.localeCompare(b.plural))
    .slice(0, most);

export interface Found {
  readonly groups: readonly Group[];
  /** The kinds that could not be looked through. */
  readonly failed: readonly string[];
}

/** What is found in a cluster, which may have a name beside others. */
const titleIn = ({ name }: Cluster, title: string): string => (name ? `${title} · ${name}` : title);

/** Kinds are known of the page's own cluster; another one may not have them. */
const isFailure = (answer: PromiseSettledResult<Group> | undefined, { name }: Cluster): boolean =>
  answer?.status === 'rejected' && !(name && answer.reason instanceof AskedError && answer.reason.status === 404);

/** Answers when all have: what comes late would move what somebody is about to choose. */
export async function find(cluster: Cluster, { text, kinds }: Question, view: View, signal: AbortSignal): Promise<Found> {
  const answers = await Promise.allSettled(
    kinds.map(async (kind): Promise<Group> => {
      const path = pathOf(defineResource<KubeObject>()(kind), { search: text, fields: ['metadata.name', 'metadata.namespace'] });
      const { items = [] } = (await answerTo(cluster.kc, `${path}&limit=${most}`, { signal })) as { readonly items?: readonly KubeObject[] };
      const entries = items.slice(0, most).map(({ metadata: { name, namespace = '' } }) => ({ href: linkToObject(kind.id, namespace, name, view), label: name, detail: namespace }));
      return { title: titleIn(cluster, kind.kind), entries };
    }),
  );
  return {
    groups: answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : [])),
    failed: kinds.filter((_, n) => isFailure(answers[n], cluster)).map(({ kind }) => titleIn(cluster, kind)),
  };
}

/** Jobs that are gone, each with how it ended and when, as far as a history is kept that may be seen. */
export async function findPast(cluster: Cluster, { text, kinds }: Question, view: View, past: string, signal: AbortSignal): Promise<Found> {
  const title = titleIn(cluster, past);
  if (!kinds.some(({ id }) => id === 'jobs.batch')) return { groups: [], failed: [] };
  try {
    const { items, more } = await pastJobs(cluster.kc, jobs, { states: ['Deleted'], search: text, limit: most }, { signal });
    if (items.length === 0 && more) return { groups: [], failed: [title] }; // not all could be looked at in its time
    const entries = items.map((job) => ({ href: linkToRun(job, view), label: job.name, detail: [job.namespace, stateName(outcomeOf(job)), formatWhen(endOf(job))].join(' · ') }));
    return { groups: [{ title, entries }], failed: [] };
  } catch (error) {
    const none = error instanceof AskedError && (error.status === 403 || error.status === 404);
    return { groups: [], failed: none ? [] : [title] };
  }
}

/** The same in another cluster than that of the page, all of it at once. What it does not serve is not there. */
export async function findElsewhere(cluster: Cluster, question: Question, view: View, past: string, signal: AbortSignal): Promise<Found> {
  const [living, gone] = await inTurn(cluster.kc, () => Promise.all([find(cluster, question, view, signal), findPast(cluster, question, view, past, signal)]));
  const groups = [...living.groups, ...gone.groups];
  const failed = [...living.failed, ...gone.failed];
  return { groups, failed: failed.length > 0 && groups.length === 0 ? [cluster.name] : failed };
}

/** What of an earlier answer goes by what has been typed since. */
export const still = (groups: readonly Group[], text: string): readonly Group[] =>
  groups.map(({ title, entries }) => ({ title, entries: entries.filter(({ label }) => label.includes(text.toLowerCase())) }));
