import { expect, test } from 'vitest';
import { formatAmount, quantity, requestsOf } from './requests.ts';

test.each([
  ['100m', 0.1], ['2', 2], ['1.5', 1.5], ['64Gi', 64 * 2 ** 30], ['500M', 5e8], ['1e3', 1_000], ['12E', 12e18], ['', 0], ['lots', 0], ['3Xi', 0], [undefined, 0],
])('%j is %d', (text, value) => {
  expect(quantity(text)).toBeCloseTo(value, 9);
});

const needs = (cpu: string, restartPolicy?: string) => ({ resources: { requests: { cpu } }, ...(restartPolicy ? { restartPolicy } : {}) });
const pod = (spec: object, phase = 'Running') => ({ metadata: { name: 'p', uid: 'p' }, spec, status: { phase } });

test('what runs before the others counts where it needs more than they, a sidecar beside all that comes after it', () => {
  expect(requestsOf(pod({ containers: [needs('1'), needs('500m')] }))).toEqual({ cpu: 1.5 });
  expect(requestsOf(pod({ containers: [needs('1')], initContainers: [needs('4')] }))).toEqual({ cpu: 4 });
  expect(requestsOf(pod({ containers: [needs('1')], initContainers: [needs('1', 'Always'), needs('4')] }))).toEqual({ cpu: 5 });
  expect(requestsOf(pod({ containers: [needs('2')], initContainers: [needs('1', 'Always')], overhead: { cpu: '250m' } }))).toEqual({ cpu: 3.25 });
});

test('limits stand for requests that are missing, and a pod that is over takes nothing', () => {
  expect(requestsOf(pod({ containers: [{ resources: { limits: { 'nvidia.com/gpu': '2' } } }] }))).toEqual({ 'nvidia.com/gpu': 2 });
  expect(requestsOf(pod({ containers: [needs('1')] }, 'Succeeded'))).toEqual({});
});

test('bytes are told in units that a person reads', () => {
  expect([formatAmount('memory', 64 * 2 ** 30), formatAmount('memory', 0), formatAmount('cpu', 1.5)]).toEqual(['64 GiB', '0 B', '1.5']);
});
