import { texts } from '../texts/texts.ts';

const names = texts<Readonly<Record<string, string>>>({
  en: {},
  'zh-CN': {
    Submitted: '已提交',
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
  },
});

/** A state as it is read. In addresses and for the gateway it keeps its English name. */
export const stateName = (state: string): string => names[state] ?? state;
