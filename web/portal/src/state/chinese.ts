// The gateway's sentences in Chinese: of why a job ended from the cause's own parts, and else from the sentence, of which the forms are few. What strangers wrote
// into them, and what has another form, stays as it is. Only pages in Chinese load it.

import type { Cause } from '@kubecast/sdk';
import { sentenceOf } from './ended.ts';

type Form = readonly [RegExp, string];

const inForms = (text: string, forms: readonly Form[]): string | undefined => {
  const found = forms.find(([form]) => form.test(text));
  return found && text.replace(...found);
};

/** How many of a job's pods ended alike, and that a policy of the job decided it. */
const alike = /^(.*?)(?:; (\d+) of (\d+) (\S+) likewise)?( \(podFailurePolicy\))?$/s;

/** What a pod, a queue or a controller says of an end. Of a stranger's words the last group has what is there. */
const ends: readonly Form[] = [
  [/^preempted(?: on (\S+))? for a pod of higher priority$/, '被优先级更高的 Pod 抢占'],
  [/^preempted by (.*)$/s, '被 $1 抢占'],
  [/^preempted: (.*)$/s, '被抢占：$1'],
  [/^preempted$/, '被抢占'],
  [/^evicted: node memory pressure$/, '因节点内存紧张被驱逐'],
  [/^evicted: node PID pressure$/, '因节点进程数紧张被驱逐'],
  [/^evicted: node disk pressure$/, '因节点磁盘紧张被驱逐'],
  [/^evicted: node drained$/, '因节点排空被驱逐'],
  [/^evicted: its pods were not ready in time$/, '被驱逐：其 Pod 未能及时就绪'],
  [/^evicted: an admission check failed$/, '被驱逐：准入检查未通过'],
  [/^evicted: a node failed$/, '被驱逐：某个节点发生故障'],
  [/^evicted: its queue was stopped$/, '被驱逐：其队列已停止'],
  [/^evicted: its workload was deactivated$/, '被驱逐：其工作负载已停用'],
  [/^evicted: (.*)$/s, '被驱逐：$1'],
  [/^evicted$/, '被驱逐'],
  [/^node (\S+) was shut down$/, '节点 $1 已关机'],
  [/^node of a pod was shut down$/, '某个 Pod 的节点已关机'],
  [/^node (\S+) was lost$/, '节点 $1 失联'],
  [/^node of a pod was lost$/, '某个 Pod 的节点失联'],
  [/^the deadline of a pod was exceeded$/, '某个 Pod 超过了运行期限'],
  [/^a pod was deleted that no node had taken: (.*)$/s, '一个尚未分配到节点的 Pod 被删除：$1'],
  [/^a pod was deleted that no node had taken$/, '一个尚未分配到节点的 Pod 被删除'],
  [/^a pod was deleted$/, '某个 Pod 被删除'],
  [/^no node takes a pod: (.*)$/s, '没有节点可容纳某个 Pod：$1'],
  [/^no node takes a pod$/, '没有节点可容纳某个 Pod'],
  [/^image cannot be pulled: (.*)$/s, '无法拉取镜像：$1'],
  [/^image cannot be pulled$/, '无法拉取镜像'],
  [/^(\S+) cannot start: (.*)$/s, '$1 无法启动：$2'],
  [/^cancelled: (.*)$/s, '已取消：$1'],
  [/^cancelled$/, '已取消'],
  [/^given up by its queue: (.*)$/s, '已被其队列放弃：$1'],
  [/^given up by its queue$/, '已被其队列放弃'],
  [/^deadline exceeded$/, '超过了运行期限'],
];

const units: Readonly<Record<string, string>> = { d: '天', h: '小时', min: '分钟', s: '秒' };
const deadline = /^deadline of (.*?) exceeded(?:: (.*))?$/s;
const again = /, after (\d+) restarts$/;

export function ofCause(cause: Cause): string {
  const [, said = cause.text, count, all, role, policy] = alike.exec(cause.text) ?? [];
  const others = count === undefined ? '' : `；${all} 个 ${role === 'pods' ? 'Pod' : (role ?? '')} 中有 ${count} 个同样如此`;
  return `${ofEnd(cause, said)}${others}${policy ? '（podFailurePolicy）' : ''}`;
}

function ofEnd(cause: Cause, said: string): string {
  const { reason, node, pods } = cause;
  if (pods > 0 && (reason === 'OOMKilled' || reason === 'Error')) return sentenceOf(cause);
  if (pods > 0 && reason === 'CrashLoopBackOff') return sentenceOf({ ...cause, restarts: Number(again.exec(said)?.[1] ?? 0) });
  const late = deadline.exec(said);
  if (late) return `超过了 ${late[1]?.replace(/[a-z]+/g, (unit) => units[unit] ?? unit)} 的运行期限${late[2] ? `：${ofEnd({ ...cause, pods: 0 }, late[2])}` : ''}`;
  const on = node && said.includes(` on ${node}`) ? `（节点 ${node}）` : '';
  const words = inForms(on ? said.replace(` on ${node}`, '') : said, ends);
  return words === undefined ? ofReason(said) : words + on;
}

/** A ground, of nodes or of groups of them, wherever it is in a sentence. */
const grounds: readonly Form[] = [
  [/too little storage free/g, '空闲存储不足'],
  [/too little (\S+) free/g, '空闲的 $1 不足'],
  [/it asks for more (\S+) than there is on a node/g, '所请求的 $1 超过单个节点所有'],
  [/as many pods as (?:they|its nodes) take/g, 'Pod 数已达上限'],
  [/as many volumes as they take/g, '卷数已达上限'],
  [/as many nodes as the group may have/g, '节点组已达上限'],
  [/as many nodes as the cluster may have/g, '集群节点数已达上限'],
  [/taint (\S+) is not tolerated/g, '不容忍污点 $1'],
  [/a taint is not tolerated/g, '不容忍某个污点'],
  [/not among those that it selects/g, '不在其选择范围内'],
  [/not the one that it names/g, '不是其指定的节点'],
  [/none of the pods that it wants beside it/g, '没有它要求同处的 Pod'],
  [/pods that it does not want beside it/g, '有它不愿同处的 Pod'],
  [/pods that do not want it beside them/g, '有不愿与它同处的 Pod'],
  [/more than their share of its pods/g, '其 Pod 已超过应有份额'],
  [/\bcordoned\b/g, '已停止调度'],
  [/a port that it asks for is taken/g, '所需端口已被占用'],
  [/its volume is elsewhere/g, '其卷在别处'],
  [/no volume for it/g, '没有可用的卷'],
  [/no free device as it claims/g, '没有其申请的空闲设备'],
  [/and (\d+) more reasons/g, '另有 $1 个原因'],
  [/ \(all (\d+)\)/g, '（全部 $1 个）'],
  [/ \((\d+) of (\d+)\)/g, '（$2 个中的 $1 个）'],
  [/ \(device class(?:es)? ([^()]+)\)/g, '（设备类 $1）'],
  [/no type of machine is large enough/g, '没有足够大的机型'],
  [/no type of machine is as it asks for/g, '没有符合要求的机型'],
  [/no machine as it asks for can be had now/g, '目前得不到符合要求的机器'],
  [/its limit is reached/g, '已达其上限'],
  [/none of those that could be would take it/g, '可增加的节点都容纳不了它'],
  [/(\S+) from (\d+) to (\d+) \(of at most (\d+)\)/g, '$1 从 $2 增至 $3（上限 $4）'],
  [/, /g, '，'],
];

const waits: readonly Form[] = [
  [/^no node fits: /, '没有合适的节点：'],
  [/^there are no nodes/, '没有任何节点'],
  [/^nodes are being added: /, '正在增加节点：'],
  [/^a node is being added: /, '正在增加节点：'],
  [/^a node is kept for it: /, '已为它预留节点：'],
  [/^no node is added: /, '不会增加节点：'],
  [/^nodes could not be added in ([^:]*): /, '无法在 $1 增加节点：'],
];
const ofPods = /^(\d+) of (\d+) pods: /;

/** Why a job waits. */
export function ofReason(text: string): string {
  const reason = text.startsWith('Unschedulable: ') ? 'Unschedulable: ' : '';
  const of = ofPods.exec(text.slice(reason.length));
  const begin = (reason && '无法调度：') + (of ? `${of[2]} 个 Pod 中的 ${of[1]} 个：` : '');
  const rest = text.slice(reason.length + (of?.[0].length ?? 0));
  const words = inForms(rest, waits);
  return begin + (words === undefined ? rest : grounds.reduce((said, [form, means]) => said.replace(form, means), words));
}

/** What Kubernetes calls states, conditions of nodes and warnings, where the word alone says nothing to who does not know it. */
const words: Readonly<Record<string, string>> = {
  OOMKilled: '内存不足',
  CrashLoopBackOff: '反复崩溃',
  ImagePullBackOff: '无法拉取镜像',
  ErrImagePull: '拉取镜像出错',
  ErrImageNeverPull: '本地没有镜像',
  InvalidImageName: '镜像名称无效',
  CreateContainerConfigError: '容器配置有误',
  CreateContainerError: '无法创建容器',
  RunContainerError: '无法运行容器',
  ContainerCannotRun: '容器无法运行',
  ContainerStatusUnknown: '容器状态未知',
  StartError: '启动失败',
  DeadlineExceeded: '超过期限',
  NodeLost: '节点失联',
  Unschedulable: '无法调度',
  DiskPressure: '磁盘紧张',
  MemoryPressure: '内存紧张',
  PIDPressure: '进程数紧张',
  NetworkUnavailable: '网络不可用',
  ReadonlyFilesystem: '文件系统只读',
  KernelDeadlock: '内核死锁',
  FailedScheduling: '无法调度',
  BackOff: '等待重试',
  BackoffLimitExceeded: '已无重试次数',
  Unhealthy: '健康检查未通过',
  FailedMount: '无法挂载卷',
  FailedAttachVolume: '无法连接卷',
  FailedBinding: '无法绑定卷',
  ProvisioningFailed: '无法创建卷',
  FailedCreate: '无法创建 Pod',
  FailedCreatePodSandBox: '无法创建 Pod 沙箱',
  FailedKillPod: '无法终止 Pod',
  NetworkNotReady: '网络未就绪',
  NodeNotReady: '节点未就绪',
  Rebooted: '节点已重启',
  SystemOOM: '节点内存耗尽',
  OOMKilling: '内存不足，终止进程',
  ImageGCFailed: '镜像清理失败',
  FreeDiskSpaceFailed: '无法释放磁盘空间',
  TaintManagerEviction: '因污点被驱逐',
};

export function ofWord(word: string): string | undefined {
  const own = word.replace(/^Init:/, '');
  return Object.hasOwn(words, own) ? `${own === word ? '' : '初始化：'}${words[own] ?? ''}（${word}）` : undefined;
}
