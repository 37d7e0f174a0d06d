// What kubectl and client-go ask for, and nobody else: watches in the form of Kubernetes, reviews, schemas.

import { check, same, until } from '../case.ts';
import { serverCase, type Trial } from './trial.ts';

interface Line {
  readonly type: string;
  readonly object: { readonly code?: number; readonly data?: { readonly n?: string }; readonly metadata: { readonly name?: string; readonly resourceVersion?: string; readonly annotations?: Readonly<Record<string, string>> } };
}

/** Reads a watch, as long as `run` takes. */
async function watched(trial: Trial, query: string, run: (lines: readonly Line[], isOver: () => boolean) => Promise<void>): Promise<void> {
  const abort = new AbortController();
  const response = await trial.ask(`${trial.room.path}?watch=true&${query}`, { headers: { Accept: 'application/json' }, signal: abort.signal });
  same(response.status, 200, `the status of a watch with ${query}`);
  const [lines, utf8, reader] = [[] as Line[], new TextDecoder(), response.body?.getReader()];
  let [rest, over] = ['', false];
  const read = async (): Promise<void> => {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      const whole = (rest + utf8.decode(part.value, { stream: true })).split('\n');
      rest = whole.pop() ?? '';
      lines.push(...whole.map((line) => JSON.parse(line) as Line));
    }
  };
  void read().catch(() => undefined).then(() => (over = true));
  try {
    await run(lines, () => over);
  } finally {
    abort.abort();
  }
}

const n = (value: number): { data: { n: string } } => ({ data: { n: String(value) } });
const told = (lines: readonly Line[]): string[] => lines.filter(({ type }) => type !== 'BOOKMARK').map(({ type, object }) => `${type} ${object.metadata.name ?? object.code} ${object.data?.n ?? ''}`.trim());
const comes = (lines: readonly Line[], ...wanted: readonly string[]): Promise<void> => until(() => told(lines).join() === wanted.join(), () => `${JSON.stringify(told(lines))} does not become ${JSON.stringify(wanted)}`);
const versionOf = async (trial: Trial): Promise<string> => ((await (await trial.ask(trial.room.path, { headers: { Accept: 'application/json' } })).json()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;

const authorization = '/apis/authorization.k8s.io/v1';
const review = (trial: Trial, path: string, spec: object): Promise<Response> => trial.ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify({ spec }) });

export const kubernetesCases = [
  serverCase('watch-of-kubernetes', 'kubectl and client-go go on behind the version of a list, and miss nothing.', async (trial) => {
    await trial.room.put('a', n(1));
    await trial.known();
    const version = await versionOf(trial);
    await trial.room.put('b', n(1));
    await watched(trial, `resourceVersion=${version}`, async (lines) => {
      await comes(lines, 'ADDED b 1');
      await trial.room.put('a', n(2));
      await trial.room.remove('b');
      await comes(lines, 'ADDED b 1', 'MODIFIED a 2', 'DELETED b 1');
      const versions = lines.map(({ object }) => Number(object.metadata.resourceVersion));
      check(versions.every((one, at) => at === 0 || one > (versions[at - 1] ?? 0)), `versions do not grow: ${versions.join()}`);
    });
    await watched(trial, 'unknown=parameter', (lines) => comes(lines, 'ADDED a 2'));
  }, 'lists'),

  serverCase('watch-of-kubernetes-narrowed', 'What begins to match is added, and what ceases to is deleted.', async (trial) => {
    await trial.room.put('a', { ...n(1), labels: { team: 'x' } });
    await trial.room.put('b', { ...n(1), labels: { team: 'y' } });
    await trial.known();
    await watched(trial, 'labelSelector=team%3Dx', async (lines) => {
      await comes(lines, 'ADDED a 1');
      await trial.room.put('b', { ...n(2), labels: { team: 'x' } });
      await trial.room.put('a', { ...n(2), labels: { team: 'y' } });
      await comes(lines, 'ADDED a 1', 'ADDED b 2', 'DELETED a 1');
    });
  }, 'lists'),

  serverCase('watch-of-kubernetes-as-a-list', 'client-go streams its lists: it is told where what is there ends.', async (trial) => {
    await trial.room.put('a', n(1));
    await trial.known();
    await watched(trial, 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true', async (lines) => {
      const isEnd = ({ type, object }: Line): boolean => type === 'BOOKMARK' && object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
      await until(() => lines.some(isEnd), () => 'the end of what is there is not told');
      same(told(lines), ['ADDED a 1'], 'what is there');
      await trial.room.put('b', n(1));
      await comes(lines, 'ADDED a 1', 'ADDED b 1');
    });
    const status = async (query: string): Promise<number> => (await trial.ask(`${trial.room.path}?watch=true&${query}`, { headers: { Accept: 'application/json' } })).status;
    for (const query of ['sort=data.n', 'countBy=data.n']) same(await status(query), 400, `the status of ${query}`);
    for (const query of ['sendInitialEvents=true', 'resourceVersionMatch=NotOlderThan']) same(await status(query), 422, `the status of ${query}`);
  }, 'lists'),

  serverCase('watch-of-kubernetes-ends', 'Who asks for a version that does not exist lists again, and a watch ends when it was said to.', async (trial) => {
    await trial.room.put('a', n(1));
    await trial.known();
    await watched(trial, 'resourceVersion=999999999', async (lines, isOver) => {
      await comes(lines, 'ERROR 410');
      await until(isOver, () => 'it goes on');
    });
    await watched(trial, 'timeoutSeconds=1', async (lines, isOver) => {
      await comes(lines, 'ADDED a 1');
      await until(isOver, () => 'it does not end');
    });
  }, 'lists'),

  serverCase('reviews', 'A tool that asks what its user may do is told what requests are answered.', async (trial) => {
    await trial.room.put('a', n(1));
    await trial.known();
    const [, group = '', namespace = '', resource = ''] = /^\/api(?:s\/([^/]+))?\/[^/]+\/namespaces\/([^/]+)\/([^/]+)$/.exec(trial.room.path) ?? [];
    const rules = await review(trial, `${authorization}/selfsubjectrulesreviews`, { namespace });
    same(rules.status, 201, 'the status of a rules review');
    const { status } = (await rules.json()) as { status: { resourceRules: { verbs: string[]; apiGroups: string[]; resources: string[] }[]; nonResourceRules: { nonResourceURLs: string[] }[]; incomplete: boolean } };
    const of = status.resourceRules.filter(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(resource)).flatMap(({ verbs }) => verbs);
    same([of.sort(), status.incomplete], [['get', 'list', 'watch'], false], 'what may be read');
    check(status.resourceRules.some(({ verbs, resources }) => verbs.includes('create') && resources.includes('selfsubjectaccessreviews')), 'it is not said that one may ask');
    same((await review(trial, `${authorization}/selfsubjectrulesreviews`, {})).status, 400, 'the status without a namespace');
    for (const [verb, allowed] of [['list', true], ['delete', false]] as const) {
      const answer = await review(trial, `${authorization}/selfsubjectaccessreviews`, { resourceAttributes: { verb, group, resource, namespace } });
      same([answer.status, ((await answer.json()) as { status: { allowed: boolean } }).status.allowed], [201, allowed], `whether one may ${verb}`);
    }
  }, 'lists'),

  serverCase('schemas', 'Types are written from the documents that the index names.', async (trial) => {
    await trial.room.put('a', n(1));
    await trial.known();
    const [, document = '', plural = ''] = /^\/(api(?:s\/[^/]+)?\/[^/]+)\/namespaces\/[^/]+\/([^/]+)$/.exec(trial.room.path) ?? [];
    const ask = async (path: string): Promise<unknown> => (await trial.ask(path, { headers: { Accept: 'application/json' } })).json();
    const { paths } = (await ask('/openapi/v3')) as { paths: Record<string, { serverRelativeURL: string }> };
    const at = paths[document]?.serverRelativeURL ?? '';
    check(at.startsWith(`/openapi/v3/${document}`), `the index does not name ${document}`);
    const { paths: lists, components } = (await ask(at)) as { paths: Record<string, { get?: Record<string, unknown> }>; components: { schemas: Record<string, { properties?: object }> } };
    same(lists[`/${document}/namespaces/{namespace}/${plural}`]?.get?.['x-kubernetes-action'], 'list', 'the path of the list');
    check(Object.values(components.schemas).some(({ properties = {} }) => 'data' in properties && 'metadata' in properties), 'no schema has what the objects have');
    same((await trial.ask('/openapi/v3/apis/none.example.org/v1')).status, 404, 'the status of a document that is not there');
  }, 'lists'),
];
