import { plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';
import type { Refusal } from './saved.ts';

export const t = texts({
  en: {
    saved: 'Saved views',
    name: 'Name of this view',
    save: 'Save',
    none: 'A table with its filters and its order can be saved under a name. This browser keeps it; its address can be copied for others.',
    change: (name: string) => `Change ${name}`,
    newName: 'New name',
    rename: 'Rename',
    overwrite: 'Overwrite with what is shown',
    copy: 'Copy address',
    copied: 'Copied',
    delete: 'Delete',
    wasSaved: 'The view was saved',
    wasRenamed: 'The view was renamed',
    wasOverwritten: 'The view was overwritten',
    wasDeleted: 'The view was deleted',
    full: (most: number) => plural(most, { other: 'These are {}, as many as there may be.' }),
    refusals: {
      many: 'It was not saved: there are as many as there may be. Delete one first.',
      taken: 'It was not saved: another view has this name. That one can be overwritten.',
      gone: 'It was not changed: another tab has deleted or renamed it.',
      refused: 'It was not saved: the browser keeps nothing, or nothing more, for this page.',
    } satisfies Readonly<Record<Refusal, string>>,
  },
  'zh-CN': {
    saved: '已保存的视图',
    name: '此视图的名称',
    save: '保存',
    none: '可以将表格及其筛选和排序以名称保存。视图保存在此浏览器中；可以复制其地址与他人共享。',
    change: (name) => `修改 ${name}`,
    newName: '新名称',
    rename: '重命名',
    overwrite: '用当前显示的内容覆盖',
    copy: '复制地址',
    copied: '已复制',
    delete: '删除',
    wasSaved: '视图已保存',
    wasRenamed: '视图已重命名',
    wasOverwritten: '视图已覆盖',
    wasDeleted: '视图已删除',
    full: (most) => plural(most, { other: '已有 {} 个视图，达到上限。' }),
    refusals: {
      many: '未保存：视图数量已达上限。请先删除一个。',
      taken: '未保存：已有同名视图。可以覆盖该视图。',
      gone: '未修改：另一个标签页已将其删除或重命名。',
      refused: '未保存：浏览器不为此页面保存数据，或存储空间已满。',
    },
  },
});
