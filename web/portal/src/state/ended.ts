// How a container ended, as a sentence of the page's language, from what a pod, or a job's cause, has of it in words and numbers.

import { wordOf } from './said.ts';
import { plural } from '../texts/format.ts';
import { texts } from '../texts/texts.ts';

export interface ContainerEnd {
  /** Kubernetes' own word, as OOMKilled or Error. */
  readonly reason?: string | undefined;
  readonly container: string;
  readonly exitCode?: number | null | undefined;
  readonly signal?: number | null | undefined;
  /** Empty: it is not told. */
  readonly node?: string | undefined;
  /** How often it was started again; undefined: it is not told. */
  readonly restarts?: number | undefined;
}

const t = texts({
  en: {
    pod: 'a pod',
    how: { OOMKilled: 'was OOM-killed', failed: 'failed', ended: 'ended' },
    exit: (code: number) => `exit ${code}`,
    signal: (number: number) => `signal ${number}`,
    said: (who: string, how: string, code: string, node: string) => [who, how, code && `(${code})`, node && `on ${node}`].filter(Boolean).join(' '),
    again: (sentence: string, restarts: number) => plural(restarts, { one: `${sentence}, after {} restart`, other: `${sentence}, after {} restarts` }),
  },
  'zh-CN': {
    pod: '某个 Pod',
    how: { OOMKilled: '因内存不足（OOM）被终止', failed: '失败', ended: '已结束' },
    exit: (code) => `退出码 ${code}`,
    signal: (number) => `信号 ${number}`,
    said: (who, how, code, node) => `${who} ${how}${code && `（${code}）`}${node && `，节点 ${node}`}`,
    again: (sentence, restarts) => plural(restarts, { other: `${sentence}，已重启 {} 次` }),
  },
});

const codeOf = ({ exitCode, signal }: ContainerEnd): string => (typeof exitCode === 'number' ? t.exit(exitCode) : typeof signal === 'number' ? t.signal(signal) : '');

export function sentenceOf(end: ContainerEnd): string {
  const how = end.reason === 'OOMKilled' ? t.how.OOMKilled : end.exitCode === 0 ? t.how.ended : t.how.failed;
  const sentence = t.said(end.container || t.pod, how, codeOf(end), end.node ?? '');
  return end.restarts ? t.again(sentence, end.restarts) : sentence;
}

/** The same in a word or two. */
export const shortOf = (end: ContainerEnd): string => [end.reason === 'Error' && codeOf(end) ? '' : wordOf(end.reason ?? ''), codeOf(end)].filter(Boolean).join(' · ');
