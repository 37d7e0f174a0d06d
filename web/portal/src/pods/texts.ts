import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    columns: { name: 'Name', namespace: 'Namespace', state: 'State', ready: 'Ready', restarts: 'Restarts', node: 'Node', owner: 'Owner', age: 'Age' },
    signal: (number: number) => `signal ${number}`,
    exitCode: (code: number) => `exit code ${code}`,
    unschedulable: 'unschedulable',
    creating: 'creating',
    initialising: 'initialising',
    unwritten: {
      ended: (how: string) => `Nothing was written: ${how}.`,
      waits: (detail: string) => `Nothing can be written yet: no container has started${detail && ` (${detail})`}.`,
      over: 'It ended, and wrote nothing.',
    },
  },
  'zh-CN': {
    columns: { name: '名称', namespace: '命名空间', state: '状态', ready: '就绪', restarts: '重启次数', node: '节点', owner: '所有者', age: '存在时间' },
    signal: (number) => `信号 ${number}`,
    exitCode: (code) => `退出码 ${code}`,
    unschedulable: '无法调度',
    creating: '正在创建',
    initialising: '正在初始化',
    unwritten: {
      ended: (how) => `没有任何输出：${how}。`,
      waits: (detail) => `尚不能有输出：还没有容器启动${detail && `（${detail}）`}。`,
      over: '已结束，没有任何输出。',
    },
  },
});
