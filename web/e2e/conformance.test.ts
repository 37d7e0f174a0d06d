// The conformance suite's cases for servers, against the real gateway on a real control plane.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lacks, serverCases, type Room, type ServerSubject, type Thing } from '../conformance/index.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });

// ConfigMaps will not do: each namespace has one of its own.
const group = 'conformance.kubecast.io';
const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `things.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { data: { type: 'object', additionalProperties: { type: 'string' } } } } },
      },
    ],
  },
};

describe.skipIf(lacking !== undefined)(`the real gateway${lacking ? ` (${lacking})` : ''}`, () => {
  let kubecast: Kubecast;
  let subject: ServerSubject;

  beforeAll(async () => {
    kubecast = await Kubecast.start();
    const token = await kubecast.token('mara.lindqvist', ['platform']);
    await kubecast.api('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const metadata = { name: 'conformance' };
    await kubecast.api('POST', `${rbac}/clusterroles`, { metadata, rules: [{ apiGroups: [group], resources: ['things'], verbs: ['get', 'list', 'watch'] }] });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'conformance' };
    await kubecast.api('POST', `${rbac}/clusterrolebindings`, { metadata, roleRef, subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'platform' }] });
    let rooms = 0;
    subject = {
      url: kubecast.url,
      headers: { Authorization: `Bearer ${token}` },
      abilities: ['queries', 'lists', 'history'],
      room: async (): Promise<Room> => {
        const namespace = `room-${rooms++}`;
        await kubecast.api('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
        const path = `/apis/${group}/v1/namespaces/${namespace}/things`;
        return {
          path,
          jobs: {
            path: `/history/apis/batch/v1/namespaces/${namespace}/jobs`,
            submit: (name) => kubecast.api('POST', `/apis/batch/v1/namespaces/${namespace}/jobs`, { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: { suspend: true, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] } } } }),
            withdraw: (name) => kubecast.api('DELETE', `/apis/batch/v1/namespaces/${namespace}/jobs/${name}?propagationPolicy=Background`),
          },
          put: async (name, { labels, data } = {}) => {
            const applied = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name, labels }, data };
            return (await kubecast.api('PATCH', `${path}/${name}?fieldManager=conformance&force=true`, applied, 'application/apply-patch+yaml')) as Thing;
          },
          remove: async (name) => {
            await kubecast.api('DELETE', `${path}/${name}`);
          },
        };
      },
    };
    // The API server, and then the gateway, take their time until they serve the kind.
    const served = async (): Promise<number> => (await fetch(`${kubecast.url}/apis/${group}/v1/things`, { headers: subject.headers })).status;
    for (let asked = 0; (await served()) !== 200; asked++) {
      if (asked > 300) throw new Error('the gateway does not serve the kind');
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  });

  afterAll(() => kubecast?.stop());

  for (const one of serverCases) {
    test.skipIf(one.needs === 'forgets').concurrent(one.name, async () => {
      expect(lacks(one, subject)).toBeUndefined();
      await one.run(subject);
    });
  }
});
