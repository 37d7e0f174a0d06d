import { texts } from '../texts/texts.ts';

const names = texts<Readonly<Record<string, string>>>({
  en: { NotReady: 'Not ready', Pressed: 'Under pressure', Unschedulable: 'Closed to new pods' },
  'zh-CN': {
    Submitted: '已提交',
    Queued: '排队中',
    Cancelled: '已取消',
    Suspended: '已挂起',
    Pending: '等待中',
    Waiting: '受阻',
    Running: '运行中',
    Retrying: '重试中',
    Complete: '已完成',
    Succeeded: '已成功',
    Failed: '已失败',
    Deleting: '删除中',
    Deleted: '已删除',
    Unknown: '未知',
    Ready: '就绪',
    NotReady: '未就绪',
    Pressed: '资源紧张',
    Unschedulable: '不接收新 Pod',
  },
});

/** A state as it is read. In addresses and for the gateway it keeps its English name. */
export const stateName = (state: string): string => names[state] ?? state;
