// What is exported, as a file: all of it, or none.

import type { KubeObject } from '@kubecast/sdk';
import { asKubernetesReads, withoutNoise } from '../job/yaml.ts';
import { byteOrderMark, csvLine, type Cell } from './csv.ts';

/** What a page offers to take away. */
export interface Exportable {
  /** The file's name, without what follows the point. */
  readonly file: string;
  /** The first line has the columns' names. */
  readonly csv: (signal: AbortSignal) => AsyncIterable<readonly Cell[]>;
  readonly yaml?: ((signal: AbortSignal) => AsyncIterable<KubeObject>) | undefined;
}

/** So many rows or objects go into a file at most: what a browser still has the memory for. */
export const most = { csv: 200_000, yaml: 20_000 };

export class TooMany extends Error {}

type OnCount = (count: number) => void;

/** A piece of so many characters is handed to the browser at once, which keeps it out of the page's memory. */
const piece = 1 << 20;

export async function csvFile(of: Exportable, signal: AbortSignal, onCount: OnCount): Promise<Blob> {
  return collect(of.csv(signal), byteOrderMark, 'text/csv;charset=utf-8', csvLine, signal, most.csv + 1, (lines) => onCount(lines - 1));
}

/** As documents of their own, which kubectl and other programs take as they take a list. */
export async function yamlFile(yaml: NonNullable<Exportable['yaml']>, signal: AbortSignal, onCount: OnCount): Promise<Blob> {
  const { stringify } = await import('yaml');
  const text = (object: KubeObject): string => `---\n${stringify(withoutNoise(object), asKubernetesReads)}`;
  return collect(yaml(signal), '', 'application/yaml', text, signal, most.yaml, onCount);
}

async function collect<T>(all: AsyncIterable<T>, first: string, type: string, text: (one: T) => string, signal: AbortSignal, bound: number, onCount: OnCount): Promise<Blob> {
  const pieces: Blob[] = [];
  let rest = first;
  let count = 0;
  for await (const one of all) {
    signal.throwIfAborted();
    if (++count > bound) throw new TooMany();
    rest += text(one);
    if (rest.length >= piece) {
      pieces.push(new Blob([rest]));
      rest = '';
    }
    if (count % 100 === 0) {
      onCount(count);
      await new Promise((resolve) => setTimeout(resolve)); // the page goes on meanwhile
    }
  }
  onCount(count);
  return new Blob([...pieces, rest], { type });
}

/** Hands a file to the browser. */
export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
