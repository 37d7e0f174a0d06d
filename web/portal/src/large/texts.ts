import { plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    total: (count: number) => plural(count, { one: '{} found', other: '{} found' }),
    noneMatches: 'Nothing matches. Of so many, the gateway looks for a part of the name.',
    denied: 'This may not be shown',
    deniedWhy: 'The gateway has refused it. Choose another namespace above, if you have one.',
  },
  'zh-CN': {
    total: (count) => plural(count, { other: '共 {} 个' }),
    noneMatches: '没有匹配项。数量很多时，网关只按名称的一部分搜索。',
    denied: '无权显示此内容',
    deniedWhy: '网关拒绝了请求。如有其他命名空间，请在上方选择。',
  },
});
