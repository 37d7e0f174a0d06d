import type { Cause } from '@kubecast/sdk';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

const none = { reason: '', container: '', exitCode: null, signal: null, pod: '', node: '', pods: 0 };
const cause = (text: string, parts: Partial<Cause> = {}): Cause => ({ ...none, text, ...parts });
const main = { container: 'main', exitCode: 137, pod: 'p', node: 'node-1', pods: 1 };

let said: typeof import('./said.ts');

beforeAll(async () => {
  localStorage.setItem('kubecast.language', 'zh-CN');
  vi.resetModules();
  said = await import('./said.ts');
  await said.untilSaid;
});
afterAll(() => {
  localStorage.removeItem('kubecast.language');
  vi.resetModules();
});

test.each<[Cause, string]>([
  [cause('main was OOM-killed (exit 137) on node-1', { ...main, reason: 'OOMKilled' }), 'main 因内存不足（OOM）被终止（退出码 137），节点 node-1'],
  [cause('main failed (exit 137) on node-1; 2 of 3 pods likewise (podFailurePolicy)', { ...main, reason: 'Error', pods: 2 }), 'main 失败（退出码 137），节点 node-1；3 个 Pod 中有 2 个同样如此（podFailurePolicy）'],
  [cause('main failed (exit 137) on node-1, after 4 restarts; 2 of 8 workers likewise', { ...main, reason: 'CrashLoopBackOff', pods: 2 }), 'main 失败（退出码 137），节点 node-1，已重启 4 次；8 个 workers 中有 2 个同样如此'],
  [cause('preempted on node-1 for a pod of higher priority', { ...main, reason: 'Preempted' }), '被优先级更高的 Pod 抢占（节点 node-1）'],
  [cause('preempted by team-b/large', { reason: 'Preempted' }), '被 team-b/large 抢占'],
  [cause('evicted: node memory pressure on node-1', { ...main, reason: 'Evicted' }), '因节点内存紧张被驱逐（节点 node-1）'],
  [cause('node node-1 was lost', { ...main, reason: 'NodeLost' }), '节点 node-1 失联'],
  [cause('deadline of 1 h 30 min exceeded', { reason: 'Deadline' }), '超过了 1 小时 30 分钟 的运行期限'],
  [cause('deadline of 15 s exceeded: image cannot be pulled: not found', { reason: 'Deadline' }), '超过了 15 秒 的运行期限：无法拉取镜像：not found'],
  [cause('trainer cannot start: CreateContainerConfigError: no secret', { reason: 'CreateContainerConfigError', pods: 1 }), 'trainer 无法启动：CreateContainerConfigError: no secret'],
  [cause('BackoffLimitExceeded: Job has reached it', { reason: 'BackoffLimitExceeded' }), '已无重试次数'],
])('a cause is told in Chinese, and what nobody knows stays as it is: %j', (one, words) => {
  expect(said.saidOf(one)).toBe(words);
});

test('what Kubernetes calls states, conditions and warnings is told in Chinese, with its own word beside it', async () => {
  const { isNamed, stateName } = await import('./texts.ts');
  expect(['OOMKilled', 'Init:CrashLoopBackOff', 'Running', 'Other', 'toString'].map((state) => [stateName(state), isNamed(state)])).toEqual([
    ['内存不足（OOMKilled）', false], ['初始化：反复崩溃（Init:CrashLoopBackOff）', false], ['运行中', true], ['Other', false], ['toString', false],
  ]);
  expect(['DiskPressure', 'FailedScheduling', 'Other'].map(said.wordOf)).toEqual(['磁盘紧张（DiskPressure）', '无法调度（FailedScheduling）', 'Other']);
});

test.each([
  ['Unschedulable: no node fits: too little nvidia.com/gpu free (all 10)', '无法调度：没有合适的节点：空闲的 nvidia.com/gpu 不足（全部 10 个）'],
  ['12 of 40 pods: no node fits: taint gpu=true is not tolerated (7 of 10), cordoned (3 of 10), and 2 more reasons', '40 个 Pod 中的 12 个：没有合适的节点：不容忍污点 gpu=true（10 个中的 7 个），已停止调度（10 个中的 3 个），另有 2 个原因'],
  ['nodes are being added: gpu from 1 to 3 (of at most 8)', '正在增加节点：gpu 从 1 增至 3（上限 8）'],
  ["couldn't assign flavors to pod set main, too little cpu free", "couldn't assign flavors to pod set main, too little cpu free"],
])('why a job waits is told in Chinese: %s', (text, words) => {
  expect(said.saidOfWait(text)).toBe(words);
});
