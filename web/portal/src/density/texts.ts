import { texts } from '../texts/texts.ts';

export const t = texts({
  en: { rows: 'Rows', comfortable: 'Comfortable', compact: 'Compact' },
  'zh-CN': { rows: '行距', comfortable: '宽松', compact: '紧凑' },
});
