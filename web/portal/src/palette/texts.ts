import { plural } from '../texts/format.ts';
import { locale } from '../texts/language.ts';
import { texts } from '../texts/texts.ts';

const list = new Intl.ListFormat(locale);

export const t = texts({
  en: {
    title: 'Go to',
    hint: 'Page, saved view, kind or name; “deploy web” for one kind',
    found: 'What was found',
    pages: 'Pages',
    saved: 'Saved views',
    kinds: 'Kinds',
    past: 'Jobs that are gone',
    searching: 'Searching…',
    count: (count: number) => plural(count, { one: '{} result', other: '{} results' }),
    failed: (kinds: readonly string[]) => `Could not search: ${list.format(kinds)}`,
  },
  'zh-CN': {
    title: '转到',
    hint: '页面、已保存的视图、类型或名称；“deploy web”只查一种类型',
    found: '搜索结果',
    pages: '页面',
    saved: '已保存的视图',
    kinds: '资源类型',
    past: '已不存在的作业',
    searching: '正在搜索…',
    count: (count) => plural(count, { other: '{} 个结果' }),
    failed: (kinds) => `无法搜索：${list.format(kinds)}`,
  },
});
