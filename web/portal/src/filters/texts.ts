import { formatNumber, plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    byState: 'Filter by state',
    all: 'All',
    namespace: 'Namespace',
    allNamespaces: 'All namespaces',
    allVisible: 'All that you may see',
    yourNamespaces: (count: number) => plural(count, { one: 'Your namespace', other: 'Your {} namespaces' }),
    filters: 'Filters',
    labelSet: (label: string, count: number) => `${label} (${formatNumber(count)})`,
    show: 'Show',
    showAll: 'Show all',
  },
  'zh-CN': {
    byState: '按状态筛选',
    all: '全部',
    namespace: '命名空间',
    allNamespaces: '所有命名空间',
    allVisible: '您可见的全部',
    yourNamespaces: (count) => plural(count, { other: '您的 {} 个命名空间' }),
    filters: '筛选',
    labelSet: (label, count) => `${label}（${formatNumber(count)}）`,
    show: '显示',
    showAll: '显示全部',
  },
});
