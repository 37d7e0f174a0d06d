// Why jobs ended, in a word or two, wherever causes are counted, chosen among or told beside a name. As a sentence: ended.ts and said.ts.

import { byKey, texts } from '../texts/texts.ts';

/** What jobs often end of, as the gateway's causes name it. */
export const causes = texts({
  en: byKey({
    OOMKilled: 'OOM-killed',
    Error: 'Container failed',
    Deadline: 'Deadline exceeded',
    Preempted: 'Preempted',
    Evicted: 'Evicted',
    NodeLost: 'Node lost',
    ImagePullBackOff: 'Image cannot be pulled',
    Unschedulable: 'No node takes a pod',
    Cancelled: 'Cancelled',
  }),
  'zh-CN': {
    OOMKilled: '内存不足',
    Error: '容器失败',
    Deadline: '超过期限',
    Preempted: '被抢占',
    Evicted: '被驱逐',
    NodeLost: '节点失联',
    ImagePullBackOff: '无法拉取镜像',
    Unschedulable: '没有节点接收 Pod',
    Cancelled: '已取消',
  },
});

/** What a Job's controller gives as its reason, where nobody knows more. */
const controllers = texts({
  en: byKey({
    BackoffLimitExceeded: 'No retries left',
    DeadlineExceeded: 'Deadline exceeded',
    PodFailurePolicy: 'Ended by its pod failure policy',
    FailedIndexes: 'Some indexes failed',
    MaxFailedIndexesExceeded: 'Too many indexes failed',
  }),
  'zh-CN': {
    BackoffLimitExceeded: '已无重试次数',
    DeadlineExceeded: '超过期限',
    PodFailurePolicy: '按 Pod 失败策略结束',
    FailedIndexes: '部分索引失败',
    MaxFailedIndexesExceeded: '失败的索引过多',
  },
});

/** What a controller's own reason means, in the page's language; undefined if it is none of these. It says less than what the job's pods say, which may come later. */
export const ownReason = (reason: string): string | undefined => (Object.hasOwn(controllers, reason) ? controllers[reason] : undefined);

const named: Readonly<Record<string, string>> = { ...controllers, ...causes };

/** Whether a cause is told in the page's language, and not as the gateway names it. */
export const isCauseNamed = (reason: string): boolean => Object.hasOwn(named, reason);

export const causeName = (reason: string): string => (isCauseNamed(reason) ? (named[reason] ?? reason) : reason);
