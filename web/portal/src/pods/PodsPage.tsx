import type { ReactNode } from 'react';
import { TablePage } from '../table/TablePage.tsx';
import { podColumns } from './columns.tsx';
import { podHeader, podLine } from './exported.ts';
import { podRow, type PodRow } from './pod.ts';
import { linkToObject, type View } from '../view/view.ts';
import { stateName } from '../state/texts.ts';
import './pods.css';

const texts = (row: PodRow): readonly string[] => [row.name, row.namespace, row.owner, row.job, row.node, row.state, stateName(row.state), row.detail];

export const narrowLine = (row: PodRow): string => [row.namespace, row.node, row.owner].filter(Boolean).join(' · ');

const exported = { header: podHeader, line: podLine };

export function PodsPage({ view }: { readonly view: View }): ReactNode {
  const href = (row: PodRow): string => linkToObject('pods', row.namespace, row.name, view);
  return <TablePage view={view} exported={exported} href={href} name="pods" read={podRow} columns={podColumns} texts={texts} narrowLine={narrowLine} />;
}
