import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    cluster: 'Cluster',
    /** Beside a namespace, which could be another one's name. */
    named: (name: string | undefined) => (name ? `cluster ${name}` : ''),
    all: 'All clusters',
    away: (name: string) => `${name} (away)`,
    missing: 'cannot be read at the moment.',
    denied: 'may not be seen by you.',
    asOf: (time: string) => `is as of ${time}.`,
    again: 'Try now',
  },
  'zh-CN': {
    cluster: '集群',
    named: (name) => (name ? `集群 ${name}` : ''),
    all: '所有集群',
    away: (name) => `${name}（失联）`,
    missing: '目前无法读取。',
    denied: '的内容您无权查看。',
    asOf: (time) => `的内容截至 ${time}。`,
    again: '立即重试',
  },
});
