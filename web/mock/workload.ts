// Made-up teams whose training jobs live in the mock: for developing the portal, and for its pictures.

import type { KubeObject } from '@kubecast/sdk';
import type { Draft, MockCluster } from './cluster.ts';
import { seededRandom } from './random.ts';

const teams = [
  { namespace: 'team-vision', queue: 'vision-gpu', owners: ['mara.lindqvist', 'tomasz.kowalski'], names: ['resnet50-imagenet', 'yolo-drone-footage', 'sam-finetune'] },
  { namespace: 'team-nlp', queue: 'nlp-gpu', owners: ['chidi.okafor', 'lena.brandt', 'sofia.marino'], names: ['llama-lora', 'bert-intent', 'tokenize-corpus', 'eval-harness'] },
  { namespace: 'team-speech', queue: 'speech-gpu', owners: ['freja.holm', 'priya.nair'], names: ['whisper-dialects', 'tts-voices'] },
  { namespace: 'team-recsys', queue: 'recsys-shared', owners: ['noah.weber', 'amara.diallo'], names: ['two-tower', 'ctr-refresh', 'candidates'] },
] as const;

type Status = Record<string, unknown>;
type MockJob = KubeObject & { readonly spec: { readonly completions: number }; readonly status: Status };

export class MockWorkload {
  readonly #cluster: MockCluster;
  readonly #random: () => number;
  readonly #live = new Map<string, { job: MockJob; pods: KubeObject[]; step: number; fate: number }>();

  constructor(cluster: MockCluster, seed = 1) {
    this.#cluster = cluster;
    this.#random = seededRandom(seed);
    for (const { namespace } of teams) cluster.put('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }

  /** Submits jobs that are as old as if they had come one by one, and lets each live for a while. */
  populate(count: number, perHour = 240): void {
    for (let n = count; n > 0; n--) {
      const uid = this.submit(Date.now() - (n * 3_600_000) / perHour);
      const steps = n > 12 ? 12 : Math.floor(this.#random() * 6);
      for (let step = 0; step < steps; step++) this.#advance(uid, n > 12 ? 1 : 0.4);
    }
  }

  submit(created = Date.now()): string {
    const team = this.#pick(teams);
    const hash = Math.floor(this.#random() * 1_048_576).toString(16).padStart(5, '0');
    const completions = this.#pick([1, 1, 1, 2, 2, 4, 8]);
    const fate = this.#random();
    const job = this.#put('jobs', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: {
        name: `${this.#pick(team.names)}-${hash}`,
        namespace: team.namespace,
        creationTimestamp: new Date(created).toISOString(),
        labels: { 'kubecast.io/owner': this.#pick(team.owners), 'kueue.x-k8s.io/queue-name': team.queue },
      },
      spec: { completions, parallelism: completions, suspend: fate > 0.93 },
      status: {},
    }) as MockJob;
    this.#live.set(job.metadata.uid, { job, pods: [], step: 0, fate });
    return job.metadata.uid;
  }

  /** Some jobs take their next step, now and then a new one comes, the oldest go. */
  tick(): void {
    if (this.#random() < 0.35) this.submit();
    for (const uid of this.#live.keys()) this.#advance(uid, 0.18);
    const jobs = this.#cluster.list('jobs');
    if (jobs.length > 400 && jobs[0]) this.#forget(jobs[0].metadata.uid);
  }

  #advance(uid: string, chance: number): void {
    const life = this.#live.get(uid);
    if (!life || this.#random() > chance) return;
    if (life.fate > 0.93 && life.step < 3) {
      life.step++;
      return; // suspended for a while
    }
    const { completions } = life.job.spec;
    const created = Date.parse(life.job.metadata.creationTimestamp ?? '');
    const at = (seconds: number): string => new Date(Math.min(Date.now(), created + seconds * 1_000)).toISOString();
    const startTime = at(3);
    switch (life.step++) {
      case 0:
        for (let n = 0; n < completions; n++) life.pods.push(this.#pod(life.job, n));
        this.#job(life, { active: completions, ready: 0, startTime });
        break;
      case 1:
        for (const [n, pod] of life.pods.entries()) life.pods[n] = this.#podPhase(pod, 'Running');
        this.#job(life, { active: completions, ready: completions, startTime });
        break;
      case 2:
        if (life.fate < 0.14) this.#job(life, { active: completions, ready: 0, failed: 1, startTime });
        break;
      case 3:
      case 4: {
        const succeeded = Math.floor((completions * (life.step - 3)) / 3);
        const failed = life.fate < 0.14 ? life.step - 2 : 0;
        this.#job(life, { active: completions - succeeded, ready: completions - succeeded, succeeded, failed, startTime });
        break;
      }
      case 5: {
        const ok = life.fate > 0.09;
        for (const pod of life.pods) this.#podPhase(pod, ok ? 'Succeeded' : 'Failed');
        const end = at(20 + life.fate * 400);
        const conditions = ok
          ? [{ type: 'Complete', status: 'True', lastTransitionTime: end }]
          : [{ type: 'Failed', status: 'True', reason: this.#pick(['BackoffLimitExceeded', 'DeadlineExceeded']), message: 'Job has reached the specified backoff limit', lastTransitionTime: end }];
        this.#job(life, { succeeded: ok ? completions : 0, failed: ok ? 0 : 3, startTime, ...(ok ? { completionTime: end } : {}), conditions });
        this.#live.delete(uid);
      }
    }
  }

  #job(life: { job: MockJob }, status: Status): void {
    life.job = this.#put('jobs', { ...life.job, spec: { ...life.job.spec, suspend: false }, status }) as MockJob;
  }

  #pod(job: MockJob, index: number): KubeObject {
    const { name, namespace, labels, creationTimestamp } = job.metadata;
    const metadata = {
      name: `${name}-${index}-${Math.floor(this.#random() * 60_466_176).toString(36).padStart(5, '0')}`,
      ...(namespace ? { namespace } : {}),
      ...(creationTimestamp ? { creationTimestamp } : {}),
      labels: { ...labels, 'batch.kubernetes.io/job-name': name, 'batch.kubernetes.io/controller-uid': job.metadata.uid },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid: job.metadata.uid, controller: true }],
    };
    const nodeName = `gpu-node-${Math.floor(this.#random() * 24)}`;
    return this.#podPhase({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName, containers: [{ name: 'main', image: 'registry.example/train:1', resources: { requests: { cpu: '8', memory: '64Gi', 'nvidia.com/gpu': '1' } } }] } }, 'Pending');
  }

  #podPhase(pod: Draft, phase: string): KubeObject {
    const state = phase === 'Failed' ? { terminated: { exitCode: 137, reason: 'OOMKilled' } } : phase === 'Pending' ? { waiting: { reason: 'ContainerCreating' } } : phase === 'Running' ? { running: {} } : { terminated: { exitCode: 0, reason: 'Completed' } };
    const containerStatuses = [{ name: 'main', ready: phase === 'Running', restartCount: 0, state }];
    return this.#put('pods', { ...pod, status: { phase, containerStatuses, startTime: pod.metadata.creationTimestamp } });
  }

  #forget(uid: string): void {
    const job = this.#cluster.list('jobs').find(({ metadata }) => metadata.uid === uid);
    for (const pod of this.#cluster.list('pods')) {
      if (pod.metadata.labels?.['batch.kubernetes.io/job-name'] === job?.metadata.name) this.#cluster.remove('pods', pod.metadata.uid);
    }
    this.#live.delete(uid);
    this.#cluster.remove('jobs', uid);
  }

  #put(resource: string, draft: Draft & { readonly spec?: unknown; readonly status?: unknown; }): KubeObject {
    return this.#cluster.put(resource, draft);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T;
  }
}
