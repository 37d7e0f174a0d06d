import { texts } from '../texts/texts.ts';

export const t = texts({
  en: { inItsWords: "In the cluster's words" },
  'zh-CN': { inItsWords: '集群的原话' },
});
