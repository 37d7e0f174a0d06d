import { texts } from '../texts/texts.ts';

export const t = texts({
  en: { least: 'It was found running: nobody saw when it began.', seenLate: ', seen late' },
  'zh-CN': { least: '发现时已在运行，何时开始无人看到。', seenLate: '（事后发现）' },
});
