import { texts } from '../texts/texts.ts';

type Key = readonly [keys: readonly string[], what: string];

export const t = texts({
  en: {
    goTo: 'Go to…',
    title: 'Keys',
    keys: [
      [['j', '↓'], 'Next row'],
      [['k', '↑'], 'Previous row'],
      [['Enter'], 'Open the row'],
      [['/'], 'Search the table'],
      [['Ctrl K', '⌘ K'], 'Go to a page, a kind or an object'],
      [['D'], 'Open the developer tools of the connection'],
      [['?'], 'Show the keys'],
    ] as readonly Key[],
    single: 'Use keys of one character',
    close: 'Close',
  },
  'zh-CN': {
    goTo: '跳转…',
    title: '快捷键',
    keys: [
      [['j', '↓'], '下一行'],
      [['k', '↑'], '上一行'],
      [['Enter'], '打开该行'],
      [['/'], '搜索表格'],
      [['Ctrl K', '⌘ K'], '转到页面、类型或对象'],
      [['D'], '打开连接的开发者工具'],
      [['?'], '显示快捷键'],
    ],
    single: '启用单字符快捷键',
    close: '关闭',
  },
});
