// The mock answers each address and parameter of openapi.yaml, or refuses it in a sentence: none is ignored in silence, and tests that use
// the mock are not green by what it passes over.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { contract, MockGateway, MockInbox, MockPast, type Address } from '../mock/index.ts';

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
}
interface Operation {
  readonly parameters?: readonly Parameter[];
}
interface Document {
  readonly paths: Readonly<Record<string, { readonly servers?: readonly unknown[]; readonly parameters?: readonly Parameter[]; readonly get?: Operation; readonly post?: Operation; readonly put?: Operation }>>;
  readonly components: { readonly parameters: Readonly<Record<string, Parameter>> };
}

const document = parse(readFileSync(new URL('../../internal/http/openapi.yaml', import.meta.url), 'utf8'), { merge: true }) as Document;

interface Route {
  readonly route: string;
  readonly method: string;
  readonly path: string;
  readonly ofClusters: boolean;
  readonly parameters: readonly Parameter[];
}

const routes: readonly Route[] = Object.entries(document.paths)
  .filter(([path]) => path !== '/{file}') // the portal's, which whoever has the mock serves
  .flatMap(([path, item]) =>
    (['get', 'post', 'put'] as const).flatMap((method) => {
      const operation = item[method];
      if (!operation) return [];
      const all = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((parameter) => (parameter.$ref ? document.components.parameters[parameter.$ref.split('/').at(-1) ?? ''] : parameter)) as Parameter[];
      return [{ route: `${method.toUpperCase()} ${path}`, method: method.toUpperCase(), path, ofClusters: item.servers !== undefined, parameters: all.filter((parameter) => parameter.in !== 'path') }];
    }),
  );

interface Question {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}
/** What has an effect, if the parameter is given it, beside what. */
interface Sample extends Question {
  readonly value: string;
}

const stream = { headers: { Accept: 'text/event-stream' } };
const samples: Readonly<Record<string, Sample>> = {
  Accept: { value: 'application/json;as=Table;g=meta.k8s.io;v=v1' },
  labelSelector: { value: 'team=x' },
  fieldSelector: { value: 'metadata.name=train' },
  limit: { value: '1' },
  continue: { value: 'none' },
  resourceVersion: { value: '99999999' },
  resourceVersionMatch: { value: 'Exact' },
  sort: { value: '-metadata.name' },
  search: { value: 'tra' },
  fields: { value: 'metadata.name' },
  countBy: { value: 'metadata.name' },
  offset: { value: '1', query: { sort: 'metadata.name' } },
  includeObject: { value: 'None', headers: { Accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' } },
  'Last-Event-ID': { value: 'no.position', ...stream },
  lastEventId: { value: 'no.position', ...stream },
  last_event_id: { value: 'no.position', ...stream },
  sendInitialEvents: { value: 'false', ...stream },
  deltas: { value: 'none', ...stream },
  conflate: { value: 'none', ...stream },
  heartbeat: { value: 'none', ...stream },
  watches: { value: '/api/v1/pods', ...stream },
  watch: { value: 'true' },
  allowWatchBookmarks: { value: 'true', query: { watch: 'true', sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' } },
  timeoutSeconds: { value: 'none', query: { watch: 'true' } },
  view: { value: 'transitions' },
  pod: { value: 'none' },
  state: { value: 'Failed' },
  owner: { value: 'nobody' },
  queue: { value: 'none' },
  uid: { value: 'none' },
  parent: { value: 'none' },
  cause: { value: 'OOMKilled' },
  since: { value: '2999-01-01T00:00:00Z' },
  until: { value: '2000-01-01T00:00:00Z' },
  by: { value: 'owner', query: { view: 'usage' } },
  step: { value: '1h', query: { view: 'usage', since: '24h' } },
  kind: { value: 'Queue' },
  unread: { value: 'true' },
  kinds: { value: 'pods' },
  container: { value: 'none' },
  follow: { value: 'perhaps' },
  previous: { value: 'true' },
  sinceSeconds: { value: '60' },
  sinceTime: { value: '2999-01-01T00:00:00Z' },
  timestamps: { value: 'true' },
  tailLines: { value: '1' },
  limitBytes: { value: '3' },
};
/** Where something else is meant by a name. */
const special: Readonly<Record<string, Sample>> = {
  'GET /stream labelSelector': { value: 'team=x', ...stream },
  'GET /stream fieldSelector': { value: 'metadata.name=train', ...stream },
  'GET /stream search': { value: 'tra', ...stream },
  'GET /stream fields': { value: 'metadata.name', ...stream },
  'GET /stream resourceVersion': { value: '1', ...stream },
  'history search': { value: 'zzz' },
  'logs search': { value: 'second' },
  'logs view': { value: 'lines' },
  'logs from': { value: '1', query: { view: 'lines' } },
  'logs limit': { value: '1', query: { view: 'lines' } },
  'logs time': { value: '2020-01-01T00:01:00Z', query: { view: 'lines' } },
  'logs context': { value: '1', query: { view: 'search', search: 'second' } },
  'logs ignoreCase': { value: 'true', query: { view: 'search', search: 'SECOND' } },
  'logs labelSelector': { value: '!' },
  'logs fieldSelector': { value: '!' },
  'GET /history/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name} limit': { value: '1', query: { view: 'transitions' } },
};
const sampleOf = ({ route, path }: Route, name: string): Sample | undefined => special[`${route} ${name}`] ?? special[`${path.split('/')[1]} ${name}`] ?? samples[name];

let gateway: MockGateway;
beforeAll(() => {
  gateway = new MockGateway();
  const { cluster } = gateway;
  for (const [name, team] of [['train', 'x'], ['eval', 'y']] as const) {
    cluster.put('pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'team-a', labels: { team } }, spec: { node: name } });
    cluster.put('jobs', { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: 'team-a', labels: { team } }, spec: { node: name } });
    for (const plural of ['nodes', 'clusterthings']) {
      cluster.put(plural, { apiVersion: plural === 'nodes' ? 'v1' : 'batch/v1', kind: plural, metadata: { name, labels: { team } }, spec: { node: name } });
    }
  }
  const [train] = cluster.list('jobs');
  cluster.put('pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'train-0', namespace: 'team-a', ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: train?.metadata.uid ?? '' }] } });
  for (const pod of ['train', 'train-0']) {
    gateway.logs.write(pod, 'first', { time: '2020-01-01T00:00:00Z' });
    gateway.logs.end(pod, { exitCode: 137 });
    for (const text of ['second', 'third']) gateway.logs.write(pod, text, { time: '2020-01-01T00:01:00Z' });
  }
  gateway.past = new MockPast();
  for (const name of ['train', 'eval']) for (const state of ['Pending', 'Running', 'Succeeded']) gateway.past.record(name, state);
  gateway.inbox = new MockInbox();
  for (const name of ['train', 'eval']) gateway.inbox.tell(name, 'Failed');
  gateway.inbox.read({ upTo: '1' });
  const jobs = [{ name: 'a', position: 1 }, { name: 'b', position: 2 }];
  gateway.queue({ name: 'train', namespace: 'team-a', kind: 'LocalQueue', jobs });
  gateway.queue({ name: 'train', kind: 'ClusterQueue', jobs });
});

/** All that is answered at once. */
async function ask(method: string, path: string, { query = {}, headers = {} }: Question = {}): Promise<{ readonly status: number; readonly tag: string | null; readonly said: string }> {
  const body = method === 'GET' ? undefined : path.endsWith('/read') ? '{"upTo":"1"}' : path.endsWith('/ticket') ? '{"path":"/api"}' : path.includes('review') ? `{"spec":${path.includes('rules') ? '{"namespace":"team-a"}' : '{"resourceAttributes":{"verb":"list","resource":"pods"}}'}}` : '{}';
  const abort = new AbortController();
  const asked = Object.keys(query).length > 0 ? `?${new URLSearchParams(query).toString()}` : '';
  const response = await gateway.fetch(path + asked, { method, headers: { Authorization: 'Bearer let-me-in', ...headers }, ...(body && { body }), signal: abort.signal });
  let said = '';
  const reader = response.body?.getReader();
  for (;;) {
    const part = await Promise.race([reader?.read(), new Promise<undefined>((resolve) => setTimeout(resolve, 5))]);
    if (!part || part.done) break;
    said += new TextDecoder().decode(part.value);
  }
  abort.abort();
  return { status: response.status, tag: response.headers.get('ETag'), said };
}

const filled = (path: string): string => {
  const resource = path.startsWith('/logs/apis') ? 'jobs' : path.includes('{namespace}') ? (path.includes('{group}') ? 'jobs' : 'pods') : path.includes('{group}') ? (path.startsWith('/history') ? 'jobs' : 'clusterthings') : 'nodes';
  const of: Readonly<Record<string, string>> = { version: 'v1', group: 'batch', namespace: 'team-a', name: 'train', path: 'api/v1', resource };
  return path.replaceAll(/\{([a-z]+)\}/g, (_, name: string) => of[name] ?? name);
};
/** A stream of several has one watch, or it is none. */
const withWatch = (path: string, question: Question): Question => (path === '/stream' ? { ...question, query: { pods: '/api/v1/namespaces/team-a/pods', ...question.query } } : question);

test('each address of openapi.yaml has its place in the contract, and none else', () => {
  expect(Object.keys(contract).sort()).toEqual(routes.map(({ route }) => route).sort());
});

describe.each(routes)('$route', (one) => {
  const { route, method, path, parameters, ofClusters } = one;
  const address: Address = contract[route] ?? { part: 'none', serves: [] };
  const { serves, lacks = {}, ignores = {} } = address;
  const at = filled(path);

  if (lacks['']) {
    test('is refused in a sentence', async () => {
      const { status, said } = await ask(method, at);
      expect([status, said]).toEqual([501, expect.stringContaining(lacks[''] ?? '?')]);
      expect(lacks['']).toMatch(/^[A-Z].*\.$/);
    });
    return;
  }

  test('is served, also below the name of the cluster, and of no other', async () => {
    const bare = await ask(method, at, withWatch(path, {}));
    expect(bare.status).toBeLessThan(300);
    if (!ofClusters) return;
    expect((await ask(method, `/clusters/default${at}`)).status).toBe(bare.status);
    expect((await ask(method, `/clusters/other${at}`)).status).toBe(404);
  });

  test('says of each parameter what becomes of it', () => {
    expect([...new Set([...serves, ...Object.keys(lacks), ...Object.keys(ignores)])].sort()).toEqual([...new Set(parameters.map(({ name }) => name))].sort());
  });

  test.each(serves.map((name) => ({ name })))('$name has an effect', async ({ name }) => {
    const { value = '', ...beside } = sampleOf(one, name) ?? {};
    const base = withWatch(path, beside);
    const bare = await ask(method, at, base);
    const isHeader = parameters.find((parameter) => parameter.name === name)?.in === 'header';
    const given = name === 'If-None-Match' ? (bare.tag ?? '') : name === 'Accept' && address.part === 'document' ? 'application/yaml' : value;
    const key = name === 'watches' ? 'other' : name;
    const with_ = isHeader ? { ...base, headers: { ...base.headers, [key]: given } } : { ...base, query: { ...base.query, [key]: given } };
    const answered = await ask(method, at, with_);
    expect([answered.status, answered.said]).not.toEqual([bare.status, bare.said]);
    expect(answered.status).not.toBe(501);
  });

  test.each(Object.entries(lacks))('%s is refused: %s', async (name, says) => {
    const { status, said } = await ask(method, at, { query: { [name]: 'true' } });
    expect([status, said]).toEqual([501, expect.stringContaining(says)]);
    expect(says).toMatch(/^[A-Z].*\.$/);
  });
});
