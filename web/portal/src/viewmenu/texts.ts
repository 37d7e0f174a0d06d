import { texts } from '../texts/texts.ts';

export const t = texts({
  en: { view: 'View' },
  'zh-CN': { view: '视图' },
});
