package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/job"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
)

// runKueue assembles Kueue as its own main does, without what one cluster of Jobs has no use for:
// other kinds of jobs, several clusters, topologies, autoscalers, election, metrics, and webhooks.
// It returns when ctx ends.
func runKueue(ctx context.Context, config *rest.Config, logger logr.Logger, ready func()) error {
	off := map[string]bool{string(features.MultiKueue): false, string(features.TopologyAwareScheduling): false}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(off); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, configapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var cfg configapi.Configuration
	scheme.Default(&cfg)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: noWebhooks{},
		// As Kueue's own manifests have it.
		Controller: crconfig.Controller{GroupKindConcurrency: map[string]int{
			"Job.batch": 5, "Workload.kueue.x-k8s.io": 5, "LocalQueue.kueue.x-k8s.io": 1, "ClusterQueue.kueue.x-k8s.io": 1, "ResourceFlavor.kueue.x-k8s.io": 1,
		}},
	})
	if err != nil {
		return err
	}
	client := manager.GetClient()
	cache := schdcache.New(client)
	requeuer := qcache.NewRequeuer()
	if err := manager.Add(requeuer); err != nil {
		return err
	}
	preemptions := expectations.New()
	queues := qcache.NewManager(client, cache, requeuer, qcache.WithPreemptionExpectations(preemptions))
	if err := indexer.Setup(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	version, err := serverVersion(manager, config)
	if err != nil {
		return err
	}
	if failed, err := core.SetupControllers(manager, queues, cache, &cfg, nil, preemptions, nil); err != nil {
		return fmt.Errorf("the controller of %s: %w", failed, err)
	}
	options := []jobframework.Option{
		jobframework.WithKubeServerVersion(version),
		jobframework.WithEnabledFrameworks([]string{job.FrameworkName}),
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithManagedJobsNamespaceSelector(labels.Everything()),
		jobframework.WithCache(cache),
		jobframework.WithQueues(queues),
	}
	if err := jobframework.SetupIndexes(ctx, manager.GetFieldIndexer(), options...); err != nil {
		return err
	}
	if err := jobframework.SetupControllers(ctx, manager, logger, options...); err != nil {
		return err
	}
	if err := serveVisibility(ctx, config, queues); err != nil {
		return fmt.Errorf("the visibility API: %w", err)
	}
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	//lint:ignore SA1019 Kueue's scheduler takes no other recorder
	recorder := manager.GetEventRecorderFor(constants.AdmissionName)
	if err := manager.Add(scheduler.New(queues, cache, client, recorder, scheduler.WithPreemptionExpectations(preemptions))); err != nil {
		return err
	}
	go func() {
		select {
		case <-manager.Elected(): // which comes last, although there is no election
			ready()
		case <-ctx.Done():
		}
	}()
	return manager.Start(ctx)
}

func serverVersion(manager ctrl.Manager, config *rest.Config) (*kubeversion.ServerVersionFetcher, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	version := kubeversion.NewServerVersionFetcher(client)
	if err := manager.Add(version); err != nil {
		return nil, err
	}
	return version, version.FetchServerVersion()
}

// noWebhooks is a webhook server that serves nothing. Kueue's webhooks suspend new Jobs, fill in
// defaults that the kinds' schemas mostly have, too, and refuse mistakes: a Job that was submitted
// suspended looks the same. Without them, the API server needs no way to this program, and tests
// that submit other Jobs do not wait for it.
type noWebhooks struct{}

func (noWebhooks) NeedLeaderElection() bool      { return false }
func (noWebhooks) Register(string, http.Handler) {}
func (noWebhooks) WebhookMux() *http.ServeMux    { return http.NewServeMux() }
func (noWebhooks) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
func (noWebhooks) StartedChecker() healthz.Checker { return healthz.Ping }

var _ webhook.Server = noWebhooks{}
