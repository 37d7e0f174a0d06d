// What is written must be what the cluster's documents say: a program that is right compiles, and one with a wrong path does not. The
// documents are a real API server's, cut down to the schemas that are needed.

import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MockGateway } from '../../mock/index.ts';
import { complaintsOf } from '../../mock/typecheck.ts';
import { choose, readWanted, summaryOf } from './choose.ts';
import { byPriority, documentOf as checked, kindsOf, type Document, type Schema } from './openapi.ts';
import { moduleOf } from './typescript.ts';

const folder = new URL('fixtures/', import.meta.url);
const documents = readdirSync(folder).map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Document);
const written = (kinds = '', from = documents): string => moduleOf(from, choose(kindsOf(from), kinds.split(',').filter(Boolean).map(readWanted)));

/** A document with one kind, whose spec this is. */
function documentOf(spec: Schema, { plural = 'things', kind = 'Thing', group = 'example.org', version = 'v1' } = {}): Document {
  const of = { group, version, kind };
  return {
    paths: { [`/apis/${group}/${version}/${plural}`]: { get: { 'x-kubernetes-action': 'list', 'x-kubernetes-group-version-kind': of } } },
    components: { schemas: { [`org.example.${version}.${kind}`]: { type: 'object', properties: { spec }, 'x-kubernetes-group-version-kind': [of] } } },
  };
}

/** What is found in modules that other tests write: all are compiled at once, which takes a second and not one for each. */
const modules = new Map<string, string>();
const compiled = (types: string): string => {
  modules.set(`module${modules.size}.ts`, types);
  return types;
};

const page = (...lines: string[]): string =>
  ["import { createKubecast } from '@kubecast/sdk';", "import * as k from './kubernetes.ts';", 'const kc = createKubecast();', ...lines, 'export { kc, k };'].join('\n');

const right = page(
  "const jobs = kc.watch(k.jobs, { fields: ['status.active', 'status.conditions', 'spec.podFailurePolicy.rules'] }).getSnapshot().data;",
  'export const active: number | undefined = jobs[0]?.status?.active;',
  "export const reason: string | undefined = jobs[0]?.status?.conditions?.find(({ type }) => type === 'Failed')?.reason;",
  "const ray = kc.watch(k.rayjobs, { fields: ['status.jobDeploymentStatus', 'spec.headGroup.any.thing', 'spec.pod.more', 'status.startTime', 'spec.metadata.anyone'] }).getSnapshot().data;",
  'export const since: string | null | undefined = ray[0]?.status?.startTime;',
  'export const all: { name: string; uid: string }[] = kc.watch(k.customresourcedefinitions).getSnapshot().data.map(({ metadata }) => metadata);',
  "kc.watch(k.batchVolcanoShJobs, { fields: ['status.state.phase'] });",
  "export const cpu: string | number | undefined = kc.watch(k.resourcequotas).getSnapshot().data[0]?.spec?.hard?.['cpu'];",
  'export const port: string | number | undefined = kc.watch(k.services).getSnapshot().data[0]?.spec?.ports?.[0]?.targetPort;',
  "export const mode: 'K8sJobMode' | 'HTTPMode' | undefined = kc.watch(k.rayjobs).getSnapshot().data[0]?.spec?.submissionMode;",
  'export const deep: k.JSONSchemaProps | undefined = kc.watch(k.customresourcedefinitions).getSnapshot().data[0]?.spec.versions[0]?.schema?.openAPIV3Schema?.properties?.["a"]?.not;',
);

const wrong: [string, string, RegExp][] = [
  ['a path that leads nowhere', "kc.watch(k.jobs, { fields: ['status.actve'] });", /is not a path of these objects/],
  ['one of another kind of the same name', "kc.watch(k.jobs, { fields: ['status.state.phase'] });", /is not a path of these objects/],
  ['one of a custom resource', "kc.watch(k.rayjobs, { fields: ['status.jobDeploymentStaus'] });", /is not a path of these objects/],
  ['what was not asked for', "export const x = kc.watch(k.jobs, { fields: ['status.active'] }).getSnapshot().data[0]?.spec;", /Property 'spec' does not exist/],
  ['what may be missing', 'export const x: number = kc.watch(k.jobs).getSnapshot().data[0]!.status!.active;', /undefined.*not assignable/],
  ['what a schema does not allow', "export const x: k.RayJob['spec'] = { submissionMode: 'Other' };", /not assignable/],
];

test('who has written types is told of which kinds, and how to have more', () => {
  const told = (list = '', from = documents): string => {
    const wanted = list.split(',').filter(Boolean).map(readWanted);
    return summaryOf('kubernetes.ts', choose(kindsOf(from), wanted), wanted);
  };
  expect(told('jobs.batch')).toBe('kubernetes.ts has one kind: jobs.batch. For others, add them to --kinds; for all that there are, leave it out.');
  expect(told('jobs.batch,services')).toMatch(/^kubernetes\.ts has 2 kinds: (services, jobs\.batch|jobs\.batch, services)\. For others/);
  const many = Array.from({ length: 14 }, (_, n) => documentOf({}, { plural: `things${n}`, kind: `Thing${n}` }));
  expect(told('', many)).toMatch(/ has 14 kinds: (things\d+\.example\.org, ){11}things\d+\.example\.org and 2 more\. These are all that there are\.$/);
});

test('a server that knows its kinds by their objects has types of what these show', async () => {
  const gateway = new MockGateway();
  gateway.cluster.put('jobs', { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'train', namespace: 'team-a' }, spec: { template: { spec: { containers: [{ name: 'main' }] } } }, status: { active: 1 } });
  gateway.cluster.put('jobs', { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'eval', namespace: 'team-a' }, status: { conditions: [] } });
  const ask = async (path: string): Promise<unknown> => (await gateway.fetch(path, { headers: { Authorization: 'Bearer let-me-in' } })).json();
  const { paths } = (await ask('/openapi/v3')) as { paths: Record<string, { serverRelativeURL: string }> };
  const found = await Promise.all(Object.values(paths).map(async ({ serverRelativeURL: at }) => checked(await ask(at), at)));
  const text = written('jobs.batch', found);
  expect(text).toContain('readonly active?: number;');
  expect(text).toMatch(/readonly containers\?: readonly \{\s+readonly name\?: string;/);
  expect(text).toContain("defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' })");
});

const types = written();
let complaints: string[];
const slow = 120_000;

afterAll(() => {
  expect(complaintsOf(Object.fromEntries(modules))).toEqual([]);
}, slow);

describe('of all kinds of a real API server', () => {
  beforeAll(() => {
    complaints = complaintsOf({ 'kubernetes.ts': types, 'right.ts': right, ...Object.fromEntries(wrong.map(([, line], n) => [`wrong${n}.ts`, page(line)])) });
  }, slow);

  test('a page compiles, and has what it asked for', () => {
    expect(complaints.filter((complaint) => !complaint.startsWith('wrong'))).toEqual([]);
  });

  test.each(wrong.map(([what, , complaint], n) => [what, n, complaint] as const))('%s does not compile', (_, n, complaint) => {
    expect(complaints.filter((one) => one.startsWith(`wrong${n}.ts:`)).join()).toMatch(complaint);
  });

  test('comments are kept, and none of them ends where it should not', () => {
    expect(types).toContain('/** Where the cluster of the job stands. */\n    readonly jobDeploymentStatus?: string;');
    expect(types).toContain('/** The command that starts the job. *\\/ is no end of a comment. */');
    expect(types).toContain('/** `rayjobs.ray.io`, in namespaces. */');
    expect(types).toContain('/** `customresourcedefinitions.apiextensions.k8s.io`, not in namespaces. */');
  });

  test('is the same, in whichever order a server tells it', () => {
    const turned = (value: unknown): unknown =>
      Array.isArray(value) || typeof value !== 'object' || value === null ? value : Object.fromEntries(Object.entries(value).reverse().map(([key, inner]) => [key, turned(inner)]));
    expect(written('', [...documents].reverse().map((document) => turned(document) as Document))).toBe(types);
  });
});

test.each<[string, unknown, string]>([
  ['null paths', { paths: null }, 'paths'],
  ['paths to nothing', { paths: { '/api/v1/pods': null } }, 'paths./api/v1/pods'],
  ['null schemas', { components: { schemas: null } }, 'components.schemas'],
  ['null components', { components: null }, 'components'],
  ['null properties', { components: { schemas: { Thing: { properties: null } } } }, 'components.schemas.Thing.properties'],
  ['a null property', { components: { schemas: { Thing: { properties: { a: { items: { properties: { b: null } } } } } } } }, 'components.schemas.Thing.properties.a.items.properties.b'],
  ['a kind that is no list', { components: { schemas: { Thing: { 'x-kubernetes-group-version-kind': 3 } } } }, 'components.schemas.Thing.x-kubernetes-group-version-kind'],
  ['a description that is a number', { components: { schemas: { Thing: { description: 3 } } } }, 'components.schemas.Thing.description'],
  ['a reference that is a number', { components: { schemas: { Thing: { allOf: [{ $ref: 3 }] } } } }, 'components.schemas.Thing.allOf[0].$ref'],
  ['a list', [], 'its beginning'],
])('a document with %s is refused by the place', (_, document, at) => {
  expect(() => checked(document, 'there')).toThrow(`there is no document of kinds as Kubernetes writes them: what is at ${at} is nothing`);
});

test('a property may have any name, also one that schemas have', () => {
  const named = { components: { schemas: { Thing: { properties: { description: { type: 'string' }, items: { type: 'array' }, $ref: { type: 'string' } } } } } };
  expect(checked(named, 'there')).toBe(named);
  for (const document of documents) expect(checked(document, 'there')).toBe(document);
});

test('of chosen kinds comes what they refer to, and no more', () => {
  const types = compiled(written('jobs.batch'));
  expect(types).toContain('export interface JobStatus ');
  expect(types).not.toMatch(/RayJob|ResourceQuota|JSONSchemaProps/);
});

test('a version that is asked for is the one that comes; else the one that Kubernetes would prefer', () => {
  const both = ['v1beta1', 'v2alpha1', 'v1'].map((version) => documentOf({ type: 'string' }, { version }));
  expect(written('things.example.org', both)).toContain("version: 'v1',");
  expect(written('things.v2alpha1.example.org', both)).toContain("version: 'v2alpha1'");
  expect(['v1', 'foo', 'v1alpha2', 'v2', 'v1beta1', 'v10'].sort(byPriority)).toEqual(['v10', 'v2', 'v1', 'v1beta1', 'v1alpha2', 'foo']);
  const types = compiled(written('things.example.org,things.v1beta1.example.org', both));
  expect(types).toContain('export const exampleOrgV1Things');
  expect(types).toContain('export const exampleOrgV1beta1Things');
});

test.each([
  ['jbos.batch', /no kind is called "jbos.batch"; of that group there are jobs\.v1\.batch/],
  ['rayjobs', /no kind is called "rayjobs"; there is rayjobs\.v1\.ray\.io/],
  ['x.y.z', /of that group there is none/],
  ['jobs.v2.batch', /there is jobs\.v1/],
  ['.batch', /is no kind: they are written as pods/],
])('%s: who mistypes is told what there is', (kinds, message) => {
  expect(() => written(kinds)).toThrow(message);
});

describe('a schema that is hard to write', () => {
  test.each<[string, Schema, string]>([
    ['int-or-string', { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }, 'number | string'],
    ['a list of either', { type: 'array', items: { oneOf: [{ type: 'integer' }, { type: 'string' }] } }, 'readonly (number | string)[]'],
    ['a list of lists', { type: 'array', items: { type: 'array', items: { type: 'string' } } }, 'readonly (readonly string[])[]'],
    ['a list of what may be null', { type: 'array', items: { type: 'string', nullable: true } }, 'readonly (string | null)[]'],
    ['words with quotes', { type: 'string', enum: ["it's", 'a"b', 'c\\d', 'e|f'] }, `'it\\'s' | 'a"b' | 'c\\\\d' | 'e|f'`],
    ['a list of words', { type: 'array', items: { type: 'string', enum: ['a', 'b'] } }, "readonly ('a' | 'b')[]"],
    ['a list of words with quotes', { type: 'array', items: { type: 'string', enum: ["it's", 'b'] } }, "readonly ('it\\'s' | 'b')[]"],
    ['a list of words with braces', { type: 'array', items: { type: 'string', enum: ['{', '}'] } }, "readonly ('{' | '}')[]"],
    ['a list of one or another object', { type: 'array', items: { oneOf: ['a', 'b'].map((key) => ({ type: 'object', properties: { [key]: { type: 'string' } } })) } }, 'readonly ({\n    readonly a?: string;\n  } | {\n    readonly b?: string;\n  })[]'],
    ['restrictions, which are no types', { type: 'object', additionalProperties: { type: 'boolean' }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }, '{ readonly [key: string]: boolean }'],
    ['nothing that is known', {}, 'unknown'],
    ['one alternative that is not known', { oneOf: [{ type: 'string' }, {}] }, 'unknown'],
    ['a reference that leads nowhere', { $ref: '#/components/schemas/gone' }, 'unknown'],
  ])('%s', (_, spec, type) => {
    const types = compiled(written('', [documentOf(spec)]));
    expect(types).toContain(`readonly spec?: ${type};`);
  });

  test('a group that would end the comment before its constant', () => {
    const of = { group: '*/ export const more = 1; /*', version: 'v1', kind: 'Thing' };
    const types = compiled(
      written('', [
        {
          paths: { '/apis/x/v1/things': { get: { 'x-kubernetes-action': 'list', 'x-kubernetes-group-version-kind': of } } },
          components: { schemas: { 'org.example.v1.Thing': { type: 'object', properties: {}, 'x-kubernetes-group-version-kind': [of] } } },
        },
      ]),
    );
    expect(types).toContain('/** `things.*\\/ export const more = 1; /*`, not in namespaces. */');
  });

  test('names that are none in TypeScript, or are taken', () => {
    const odd = [
      documentOf({ type: 'object', properties: { 'a-b': { type: 'string' }, "it's": { type: 'string' }, '1': { type: 'string' } } }, { kind: 'string', plural: 'class' }),
      documentOf({ type: 'string' }, { kind: 'StoredMeta', plural: 'my-things' }),
    ];
    const types = compiled(written('', odd));
    expect(types).toContain('export const classResource');
    expect(types).toContain('export const myThings');
  });
});
