import type { Collection } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { TablePage, type TablePageProps } from '../table/TablePage.tsx';
import { podColumns } from './columns.tsx';
import { podHeader, podLine } from './exported.ts';
import { podRow, podStates, type Pod, type PodRow } from './pod.ts';
import { linkToObject } from '../view/view.ts';
import { stateName } from '../state/texts.ts';
import './pods.css';

const texts = (row: PodRow): readonly string[] => [row.name, row.namespace, row.owner, row.job, row.node, row.state, stateName(row.state), row.detail];

export const narrowLine = (row: PodRow): string => [row.namespace, row.node, row.owner].filter(Boolean).join(' · ');

const exported = { header: podHeader, line: podLine };

type Props = Pick<TablePageProps<Pod, PodRow>, 'view' | 'filters' | 'empty'> & { readonly collection: Collection<Pod> };

export function PodsPage(props: Props): ReactNode {
  const href = (row: PodRow): string => linkToObject('pods', row.namespace, row.name, props.view);
  return <TablePage {...props} exported={exported} href={href} name="pods" read={podRow} columns={podColumns} states={podStates} texts={texts} narrowLine={narrowLine} />;
}
