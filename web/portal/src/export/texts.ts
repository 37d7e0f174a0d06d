import { plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export const t = texts({
  en: {
    export: 'Export',
    csv: 'CSV, for spreadsheets',
    yaml: 'YAML, whole objects',
    count: (count: number) => plural(count, { one: '{} so far…', other: '{} so far…' }),
    cancel: 'Cancel',
    failed: 'Nothing was saved:',
    tooMany: (most: number) => plural(most, { other: 'these are more than {}. Filter them, or choose a namespace.' }),
    dismiss: 'OK',
    columns: {
      name: 'Name', namespace: 'Namespace', state: 'State', detail: 'Reason', message: 'Message', owner: 'Owner', queue: 'Queue', created: 'Created', started: 'Started', ended: 'Ended',
      succeeded: 'Succeeded', failed: 'Failed', completions: 'Completions', ready: 'Ready', containers: 'Containers', restarts: 'Restarts', node: 'Node', job: 'Job', ran: 'Ran (seconds)', longer: 'Ran longer', yes: 'yes', attempt: 'Attempt',
      cpuHours: 'CPU hours', memoryHours: 'GiB hours', gpuHours: 'GPU hours', podFailures: 'Pods failed', preemptions: 'Preemptions', cause: 'Cause',
    },
  },
  'zh-CN': {
    export: '导出',
    csv: 'CSV（电子表格）',
    yaml: 'YAML（完整对象）',
    count: (count) => plural(count, { other: '已读取 {} 个…' }),
    cancel: '取消',
    failed: '未保存任何内容：',
    tooMany: (most) => plural(most, { other: '超过 {} 个。请先筛选，或选择一个命名空间。' }),
    dismiss: '确定',
    columns: {
      name: '名称', namespace: '命名空间', state: '状态', detail: '原因', message: '消息', owner: '所有者', queue: '队列', created: '创建时间', started: '开始时间', ended: '结束时间',
      succeeded: '成功', failed: '失败', completions: '应完成数', ready: '就绪', containers: '容器数', restarts: '重启次数', node: '节点', job: '作业', ran: '运行时长（秒）', longer: '实际更长', yes: '是', attempt: '尝试次数',
      cpuHours: 'CPU 小时', memoryHours: '内存 GiB 小时', gpuHours: 'GPU 小时', podFailures: '失败的 Pod', preemptions: '被抢占次数', cause: '结束原因',
    },
  },
});
