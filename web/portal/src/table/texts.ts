import { formatNumber, plural } from '../texts/format.ts';
import { byKey, texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    names: byKey({ jobs: 'Jobs', pods: 'Pods' }),
    loading: byKey({ jobs: 'Loading jobs…', pods: 'Loading pods…' }),
    noneMatches: {
      jobs: (count: number) => plural(count, { one: 'The only job does not match.', other: 'None of the {} jobs matches.' }),
      pods: (count: number) => plural(count, { one: 'The only pod does not match.', other: 'None of the {} pods matches.' }),
    },
    notSorted: 'of so many, not to be sorted by',
    clear: 'Clear the filters',
    more: (count: number) => `${formatNumber(count)} new ↑`,
  },
  'zh-CN': {
    names: { jobs: '作业', pods: 'Pod' },
    loading: { jobs: '正在加载作业…', pods: '正在加载 Pod…' },
    noneMatches: {
      jobs: (count) => plural(count, { other: '{} 个作业均不匹配。' }),
      pods: (count) => plural(count, { other: '{} 个 Pod 均不匹配。' }),
    },
    notSorted: '数量很多时不能按此列排序',
    clear: '清除筛选',
    more: (count) => `${formatNumber(count)} 个新项 ↑`,
  },
});
