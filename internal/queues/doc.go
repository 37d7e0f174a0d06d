// Package queues owns what the queues of Kueue and Volcano say of themselves and of the jobs that wait in them: what they
// have and use, and whose Workload or PodGroup a job is. It reads objects, and asks nobody.
//
// What it promises: each form of the objects that Kueue has served is read, v1beta1 and v1beta2.
package queues
