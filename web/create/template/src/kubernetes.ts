// Replace it by what `npm run types` writes.
import { defineResource, type KubeObject } from '@kubecast/sdk';

export interface Job extends KubeObject {
  readonly status?: { readonly active?: number; readonly succeeded?: number; readonly failed?: number };
}

export const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
