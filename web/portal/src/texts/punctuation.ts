// What stands between texts that are put together.

import { texts } from './texts.ts';

export const marks = texts({
  en: { comma: ', ', list: ', ', colon: ': ', within: (text: string) => ` (${text})` },
  'zh-CN': { comma: '，', list: '、', colon: '：', within: (text) => `（${text}）` },
});
