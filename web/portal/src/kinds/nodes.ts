// What the table of nodes tells beside what kubectl prints: what presses a node, and the GPUs that it has for pods.

import type { KubeObject } from '@kubecast/sdk';
import { isGPU, quantity } from '../object/requests.ts';
import { isTrouble } from '../object/trouble.ts';

export const nodeFields = ['status.allocatable', 'status.conditions.type', 'status.conditions.status'];

interface Node extends KubeObject {
  readonly status?: { readonly allocatable?: Readonly<Record<string, string>>; readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

export interface NodeCells {
  /** The conditions that tell of trouble, as DiskPressure. */
  readonly troubles: readonly string[];
  readonly gpus: number;
}

export function nodeCells(node: Node): NodeCells {
  const { conditions = [], allocatable = {} } = node.status ?? {};
  const gpus = Object.entries(allocatable).reduce((sum, [name, amount]) => (isGPU(name) ? sum + quantity(amount) : sum), 0);
  return { troubles: conditions.filter(isTrouble).map(({ type }) => type), gpus };
}
