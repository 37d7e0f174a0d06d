import { wordOf } from './said.ts';
import { texts } from '../texts/texts.ts';

const names = texts<Readonly<Record<string, string>>>({
  en: { Pressed: 'Under pressure' },
  'zh-CN': {
    Completed: '已完成',
    Terminating: '删除中',
    ContainerCreating: '正在创建容器',
    PodInitializing: '正在初始化',
    SchedulingGated: '调度受限',
    'Ready,SchedulingDisabled': '就绪，不接收新 Pod',
    'NotReady,SchedulingDisabled': '未就绪，不接收新 Pod',
    Available: '可用',
    Unavailable: '不可用',
    Active: '活动',
    Bound: '已绑定',
    Error: '出错',
    Preempted: '被抢占',
    Evicted: '被驱逐',
    Submitted: '已提交',
    Queued: '排队中',
    Cancelled: '已取消',
    Suspended: '已挂起',
    Pending: '等待中',
    Waiting: '受阻',
    Running: '运行中',
    Retrying: '重试中',
    Succeeded: '已成功',
    Failed: '已失败',
    Deleting: '删除中',
    Deleted: '已删除',
    Unknown: '未知',
    Ready: '就绪',
    NotReady: '未就绪',
    Pressed: '资源紧张',
  },
});

/** A state as it is read. In addresses and for the gateway it keeps its English name. */
export const stateName = (state: string): string => (Object.hasOwn(names, state) ? names[state] : undefined) ?? wordOf(state);

/** Whether a state is told in the page's language alone, and not as the cluster does, or with its word beside it. */
export const isNamed = (state: string): boolean => Object.hasOwn(names, state);
