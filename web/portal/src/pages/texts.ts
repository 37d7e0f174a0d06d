import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    titles: { mine: 'Mine', overview: 'Overview', jobs: 'Jobs', pods: 'Pods', queues: 'Queues', history: 'History', kinds: 'Kinds' },
    loading: 'Loading…',
    notLoaded: 'This part of the portal could not be loaded. The gateway may be away, or there is a newer version.',
    reload: 'Load it again',
    unknown: 'There is no page at this address',
    unknownWhy: 'The address may be cut off or misspelled, or of another version of the portal.',
    toMine: 'To your own page',
  },
  'zh-CN': {
    titles: { mine: '我的', overview: '总览', jobs: '作业', pods: 'Pod', queues: '队列', history: '历史', kinds: '资源类型' },
    loading: '正在加载…',
    notLoaded: '门户的这一部分无法加载。网关可能不可用，或者已有更新的版本。',
    reload: '重新加载',
    unknown: '此地址没有页面',
    unknownWhy: '地址可能不完整、有拼写错误，或属于门户的其他版本。',
    toMine: '前往您的页面',
  },
});
