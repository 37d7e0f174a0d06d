import { plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    total: (count: number) => plural(count, { one: '{} found', other: '{} found' }),
    noneMatches: 'Nothing matches. Of so many, the gateway looks for a part of the name.',
  },
  'zh-CN': {
    total: (count) => plural(count, { other: '共 {} 个' }),
    noneMatches: '没有匹配项。数量很多时，网关只按名称的一部分搜索。',
  },
});
