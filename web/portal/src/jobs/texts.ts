import { plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    columns: { name: 'Name', namespace: 'Namespace', state: 'State', progress: 'Progress', owner: 'Owner', queue: 'Queue', duration: 'Run time', age: 'Age' },
    done: (count: number) => plural(count, { other: '{} done' }),
    failing: (reason: string) => `failing: ${reason}`,
    unknown: 'unknown',
    finishing: 'finishing',
    failed: (count: number) => plural(count, { other: '{} failed' }),
  },
  'zh-CN': {
    columns: { name: '名称', namespace: '命名空间', state: '状态', progress: '进度', owner: '所有者', queue: '队列', duration: '运行时长', age: '存在时间' },
    done: (count) => plural(count, { other: '已完成 {} 个' }),
    failing: (reason) => `即将失败：${reason}`,
    unknown: '原因不明',
    finishing: '即将完成',
    failed: (count) => plural(count, { other: '失败 {} 次' }),
  },
});
