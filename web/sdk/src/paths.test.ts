// Mostly for the compiler, which `npm run lint` asks: a misspelled path must not compile, nor what was not asked for.
import { expect, expectTypeOf, test } from 'vitest';
import { createKubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import type { Query } from './resource.ts';
import type { Draft } from '../../mock/cluster.ts';
import { counts } from './counts.ts';
import type { ColumnOf, Paths } from './paths.ts';
import { useObject as useObjectInReact, useWatch as useInReact } from './react.ts';
import { defineResource, pathOf, type Labels, type Where } from './resource.ts';
import { createWatch } from './solid.ts';
import { useObject as useObjectInVue, useWatch as useInVue } from './vue.ts';

interface Job extends KubeObject {
  readonly spec: { readonly parallelism?: number; readonly template: { readonly metadata?: { readonly labels?: Record<string, string> }; readonly spec: { readonly containers: readonly { readonly name: string }[] } } };
  readonly status?: { readonly active?: number; readonly conditions?: readonly { readonly type: string }[] };
}
const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
/** Any object is one of these. */
interface Report extends KubeObject {
  readonly status?: { readonly phase?: string };
}
const reports = defineResource<Report>()({ group: 'example.org', version: 'v1', plural: 'reports' });
const anything = defineResource<KubeObject>()({ group: 'example.org', version: 'v1', plural: 'widgets' });

test('of an object there is what was asked for, and its identity', () => {
  const kc = createKubecast({ fetch: () => Promise.reject(new Error('nobody asks')) });
  const some = () => kc.watch(jobs, { namespace: 'n', fields: ['status.active', 'spec.template.spec.containers', 'metadata.labels.app\\.kubernetes\\.io/name'] }).getSnapshot().data[0];
  type Some = NonNullable<ReturnType<typeof some>>;
  expectTypeOf<Some['status']>().toEqualTypeOf<{ readonly active?: number } | undefined>();
  expectTypeOf<Some['spec']['template']['spec']['containers'][number]['name']>().toEqualTypeOf<string>();
  expectTypeOf<NonNullable<Some['metadata']['labels']>['app.kubernetes.io/name']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<Some['metadata']['name']>().toEqualTypeOf<string>();
  // @ts-expect-error It was not asked for.
  expect(some()?.spec.parallelism).toBeUndefined();
  // @ts-expect-error Nor was this asked for.
  expect(some()?.metadata.annotations).toBeUndefined();

  expectTypeOf(kc.watch(jobs).getSnapshot().data[0]).toEqualTypeOf<Job | undefined>();
  const query: Query = { fields: ['whatever'] };
  expectTypeOf(kc.watch(jobs, query).getSnapshot().data[0]).toEqualTypeOf<Job | undefined>();
  expectTypeOf(kc.watch(anything, { fields: ['spec.size'] }).getSnapshot().data[0]).toEqualTypeOf<KubeObject | undefined>();
  expectTypeOf(kc.watch(reports, { fields: ['status.phase'] }).getSnapshot().data[0]?.status?.phase).toEqualTypeOf<string | undefined>();
  expect(kc.watch(jobs, { fields: ['status.active'] }).getSnapshot().data).toEqual([]);
  kc.close();
});

test('what an object is doing is a path of all, and a text', () => {
  const kc = createKubecast({ fetch: () => Promise.reject(new Error('nobody asks')) });
  const some = () => kc.watch(jobs, { fields: ['$status', 'status.active'] }).getSnapshot().data[0];
  type Some = NonNullable<ReturnType<typeof some>>;
  expectTypeOf<Some['$status']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<Some['status']>().toEqualTypeOf<{ readonly active?: number } | undefined>();
  const one: Draft = { metadata: { name: 'a' }, $status: 'Running', data: { key: 'of a ConfigMap' } };
  expect([some(), one.$status]).toEqual([undefined, 'Running']);
  kc.close();
});

test('a function is no query: where one is expected, it has to be called', () => {
  const never = () => {
    const chosen = Math.random() > 0.5 ? { namespace: 'n', name: 'a' } : undefined;
    // @ts-expect-error It returns none.
    useObjectInVue(jobs, () => 42);
    // @ts-expect-error Misspelled.
    useObjectInVue(jobs, () => ({ namespaze: 'n' }));
    // @ts-expect-error In React it is not called.
    useObjectInReact(jobs, () => 42);
    expectTypeOf(useObjectInVue(jobs, () => chosen ?? 'skip').value.status === 'idle').toEqualTypeOf<boolean>();
  };
  expect(never).toBeTypeOf('function');
});

test('a path that leads nowhere is told by itself, and does not make the others wrong', () => {
  type Told = Paths<Job, readonly ['status.active', 'status.activ']>;
  expectTypeOf<Told>().toEqualTypeOf<readonly ['status.active', { readonly 'is not a path of these objects': 'status.activ' }]>();
});

test('paths are put together from those of others, and chosen among some', () => {
  const never = (some: readonly string[], either: 'status.active' | '$status', column: ColumnOf<Job>, columns: readonly ColumnOf<Job>[]) => {
    const kc = createKubecast();
    expectTypeOf(kc.watch(jobs, { fields: [...some, 'status.active'] }).getSnapshot().data[0]).toEqualTypeOf<Job | undefined>();
    expectTypeOf(kc.watch(jobs, { fields: ['status.active', ...some] }).getSnapshot().data[0]).toEqualTypeOf<Job | undefined>();
    useInReact(jobs, { fields: [...some, 'metadata.labels'] });
    counts(jobs, [...some, 'status.active']);
    kc.watch(jobs, { fields: ['metadata.labels', either] }).getSnapshot().data[0]?.status?.active?.toFixed();
    kc.watch(jobs, { fields: columns });
    counts(jobs, [either]);
    counts(jobs, [column, 'metadata.namespace']);
    counts(jobs, columns);
    // @ts-expect-error One of them leads nowhere.
    counts(jobs, [either as 'status.active' | 'status.activ']);
  };
  expect(never).toBeTypeOf('function');
});

test('a path that leads nowhere does not compile', () => {
  const never = () => {
    const kc = createKubecast();
    // @ts-expect-error Misspelled.
    kc.watch(jobs, { fields: ['status.activ'] });
    // @ts-expect-error Of an array only the whole can be asked for.
    kc.watch(jobs, { fields: ['status.active', 'spec.template.spec.containers.name'] });
    // @ts-expect-error Also of a kind of which all parts may be missing, as a cluster describes them.
    kc.watch(reports, { fields: ['status.phse'] });
    // @ts-expect-error A number has no fields.
    useInReact(jobs, { fields: ['status.active.x'] });
    // @ts-expect-error Likewise where what is asked for depends on something.
    createWatch(jobs, () => ({ namespace: 'n', fields: ['status.activ'] }));
    // @ts-expect-error And in Vue.
    useInVue(jobs, () => ({ fields: ['status.activ'] }));
    useInVue(jobs, () => ({ fields: ['status.active'] })).value.data[0]?.status?.active?.toFixed();
  };
  expect(never).toBeTypeOf('function');
});

test('selectors that mean the same are one text, however they are written', () => {
  const selectors = (query: Query): string => decodeURIComponent(pathOf(jobs, query).replace(/^[^?]*\??/, '').replaceAll('+', ' '));
  const labels = { tier: ['b', 'a'], 'example.org/app': 'train', env: { not: 'prod' }, zone: { not: ['y', 'x'] }, gpu: true, old: false, one: ['x'], none: '' };
  expect(selectors({ labels })).toBe('labelSelector=env!=prod,example.org/app=train,gpu,none=,!old,one=x,tier in (a,b),zone!=x,zone!=y');
  expect(selectors({ labels: Object.fromEntries(Object.entries(labels).reverse()) })).toBe(selectors({ labels }));
  expect(selectors({ where: { 'status.phase': 'Running', 'spec.nodeName': { not: '' }, 'spec.paused': false, 'status.active': { not: [2, 0] } } })).toBe(
    'fieldSelector=spec.nodeName!=,spec.paused=false,status.active!=0,status.active!=2,status.phase=Running',
  );
  expect(selectors({ where: { 'metadata.annotations.a\\.b/c': 'x=1,y\\z!' } })).toBe('fieldSelector=metadata.annotations.a\\.b/c=x\\=1\\,y\\\\z!');
  expect(selectors({ labels: {}, where: {} })).toBe('');
  const kc = createKubecast({ fetch: () => Promise.reject(new Error('nobody asks')) });
  expect(kc.watch(jobs, { labels: { b: 'c', a: 'b' } })).toBe(kc.watch(jobs, { labels: 'a=b,b=c' }));
  kc.close();
});

test('what no selector can say is refused in words, and does not select others', () => {
  const none = undefined as unknown as string;
  const labels: readonly Labels[] = [{ app: none }, { app: [] }, { app: { not: none } }, { app: 'a,b' }, { app: 'a b' }, { 'a=b': 'c' }, { '': 'c' }, { app: ['a', 'b)'] }, { app: { not: '!' } }];
  for (const one of labels) expect(() => pathOf(jobs, { labels: one }), JSON.stringify(one)).toThrow(/^no selector for .*: /);
  const list = ['a', 'b'] as unknown as string;
  const where: readonly Where[] = [{ 'status.phase': none }, { 'status.phase': list }, { 'status.phase': { not: [] } }, { 'a=b': 'c' }, { 'a,b': 'c' }, { 'a!': 'c' }, { 'a\\': 'c' }, { '': 'c' }];
  for (const one of where) expect(() => pathOf(jobs, { where: one }), JSON.stringify(one)).toThrow(/^no selector for .*: /);
});
