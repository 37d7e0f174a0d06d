import { texts } from '../texts/texts.ts';

export const t = texts({
  en: { columns: 'Columns', usual: 'The usual columns' },
  'zh-CN': { columns: '列', usual: '默认列' },
});
