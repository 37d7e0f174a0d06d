import { expect, test } from 'vitest';
import { differences } from './differences.ts';

const job = (spec: object, metadata: object = {}): Parameters<typeof differences>[0] => ({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'train', uid: String(Math.random()), ...metadata }, spec }) as never;
const told = (here: object, there: object): string[] => differences(job(here), job(there)).map((one) => `${one.path}: ${one.here ?? '–'} | ${one.there ?? '–'}`);
const pod = (container: object, more: object = {}): object => ({ template: { spec: { containers: [{ name: 'main', image: 'a', ...container }], ...more } } });

test('only what differs is told, by its path, with what one of them has alone', () => {
  expect(told({ parallelism: 1, suspend: false, backoffLimit: 3 }, { backoffLimit: 3, parallelism: 2, completions: 4 })).toEqual(['spec.completions: – | 4', 'spec.parallelism: 1 | 2', 'spec.suspend: false | –']);
});

test('the same fields and named parts in another order are no difference', () => {
  const env = [{ name: 'A', value: '1' }, { name: 'B', value: '2' }];
  expect(told(pod({ env, ports: [{ containerPort: 1 }, { containerPort: 2 }] }), pod({ ports: [{ containerPort: 2 }, { containerPort: 1 }], env: [...env].reverse() }))).toEqual([]);
  expect(told(pod({ env }), pod({ env: [{ value: '3', name: 'B' }, { name: 'C', valueFrom: { fieldRef: { fieldPath: 'x' } } }] }))).toEqual([
    'spec.template.spec.containers[main].env[A].value: 1 | –',
    'spec.template.spec.containers[main].env[B].value: 2 | 3',
    'spec.template.spec.containers[main].env[C].valueFrom.fieldRef.fieldPath: – | x',
  ]);
});

test('an argument that comes in between moves no other one, and one that is changed stands beside what it was', () => {
  const at = 'spec.template.spec.containers[main].args';
  expect(told(pod({ args: ['run', '--lr', '0.1', '--fast'] }), pod({ args: ['run', '--seed', '7', '--lr', '0.2', '--fast'] }))).toEqual([`${at}[1]: – | --seed`, `${at}[2]: – | 7`, `${at}[2]: 0.1 | 0.2`]);
  expect(told(pod({ command: ['a', 'b'] }), pod({ command: ['b', 'a'] }))).toHaveLength(2); // another command
});

test('parts without names are compared as what they are, wherever they stand', () => {
  const tolerate = (key: string, effect: string): object => ({ key, effect });
  expect(told(pod({}, { tolerations: [tolerate('a', 'X'), tolerate('a', 'Y')] }), pod({}, { tolerations: [tolerate('a', 'Y'), tolerate('a', 'X')] }))).toEqual([]);
  expect(told(pod({}, { tolerations: [tolerate('a', 'X'), tolerate('a', 'Y')] }), pod({}, { tolerations: [tolerate('a', 'Y')] }))).toEqual(['spec.template.spec.tolerations[].effect: X | –', 'spec.template.spec.tolerations[].key: a | –']);
});

test('what every object has its own of is no difference, and labels are told whatever their names', () => {
  const labels = (uid: string, more: object): object => ({ labels: { 'batch.kubernetes.io/controller-uid': uid, 'controller-uid': uid, ...more } });
  const one = { ...job({ selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': '1' } } }, { ...labels('1', { 'team.example/x': 'a' }), resourceVersion: '7', generation: 1 }), status: { failed: 1 } };
  const other = { ...job({ selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': '2' } } }, { ...labels('2', { 'team.example/x': 'b' }), resourceVersion: '9', generation: 2 }), status: {} };
  expect(differences(one, other)).toEqual([{ path: 'metadata.labels["team.example/x"]', here: 'a', there: 'b' }]);
});

test('values of two types, and what is empty, are told apart', () => {
  expect(told({ a: '1', b: [], c: {}, d: '', e: null }, { a: 1 })).toEqual(['spec.a: "1" | 1', 'spec.b: [] | –', 'spec.c: {} | –', 'spec.d: "" | –', 'spec.e: null | –']);
  expect(told({ a: { b: 1 } }, { a: [1] })).toEqual(['spec.a: {"b":1} | [1]']);
});
