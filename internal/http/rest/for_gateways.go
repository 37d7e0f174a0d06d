package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// This file answers what only other gateways are answered, whose API server this one is: reviews of others, and the order of
// Kueue's queues. The API server is asked with this gateway's own rights. Each question is decoded and asked anew, so that
// nothing else is passed on with it.

// reviewsOfOthers are the reviews that say who somebody else is, and what they may do, with the kind of each. They change nothing.
var reviewsOfOthers = map[schema.GroupVersionResource]schema.GroupVersionKind{
	authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"): authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"),
	authenticationv1.SchemeGroupVersion.WithResource("tokenreviews"):        authenticationv1.SchemeGroupVersion.WithKind("TokenReview"),
}

// IsReviewOfOthers reports whether a review of others is posted to a path.
func IsReviewOfOthers(path string) bool {
	t, ok := visibility.Parse(path)
	_, isReview := reviewsOfOthers[resourceOf(t)]
	return ok && isReview && t.Namespace == "" && t.Name == ""
}

func isReviewOfOthers(group, resource string) bool {
	for review := range reviewsOfOthers {
		if review.Group == group && review.Resource == resource {
			return true
		}
	}
	return false
}

// forGatewaysWithin is how long the API server may take.
const forGatewaysWithin = 10 * time.Second

// PostReviewOfOthers answers a review of others, which another gateway has posted, as the API server does. The calling code must
// have checked that it is one.
func (h *Handler) PostReviewOfOthers(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	t, _ := visibility.Parse(r.URL.Path)
	kinds, err := h.access.Cluster(t.Cluster)
	if err != nil {
		return err
	}
	encoder := reply.Choose(r.Header, encoderOf)
	if encoder == nil {
		return reply.NotAcceptable("a review can be answered as application/json and application/vnd.kubernetes.protobuf")
	}
	gvk := reviewsOfOthers[resourceOf(t)]
	review, err := readReview(r, gvk)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), forGatewaysWithin)
	defer cancel()
	answer, err := ask(ctx, kinds, review)
	if err != nil {
		return ofAPIServer(id, t, err)
	}
	return writeReview(w, encoder, gvk, answer)
}

// ask has the API server answer a review. Of what was sent, only what is asked counts.
func ask(ctx context.Context, kinds *cache.Kinds, review runtime.Object) (runtime.Object, error) {
	switch review := review.(type) {
	case *authorizationv1.SubjectAccessReview:
		return kinds.Cluster().Reviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: review.Spec}, metav1.CreateOptions{})
	case *authenticationv1.TokenReview:
		return kinds.Cluster().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: review.Spec}, metav1.CreateOptions{})
	}
	return nil, cluster.ErrNoKind // cannot be
}

// ofAPIServer is the error of what the API server did not answer as it was asked.
func ofAPIServer(id auth.Identity, t visibility.Target, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err): // this gateway itself
		return access.Forbidden(id, t, "create")
	case errors.As(err, &status) && (status.Status().Code == http.StatusBadRequest || status.Status().Code == http.StatusUnprocessableEntity):
		return reply.BadRequest("the API server does not take this review")
	}
	return reply.Unavailable("the API server cannot be asked", time.Second, err)
}

// Pending is a path of Kueue's visibility API that says who waits in a ClusterQueue.
type Pending struct {
	target visibility.Target
}

// ParsePending reads such a path; ok is false for any other.
func ParsePending(path string) (p Pending, ok bool) {
	object, is := strings.CutSuffix(path, "/pendingworkloads")
	t, ok := visibility.Parse(object)
	t.Subresource = "pendingworkloads"
	return Pending{t}, is && ok && t.Group == cluster.VisibilityGroup && t.Resource == "clusterqueues" && t.Name != "" && t.Namespace == ""
}

// Pending answers another gateway in which order Workloads wait, as far as gateways read it. It is asked for together with
// whoever else wants to know.
func (h *Handler) Pending(w http.ResponseWriter, r *http.Request, id auth.Identity, p Pending) error {
	t := p.target
	order, err := h.pending(r.Context(), id, t)
	if err != nil {
		return err
	}
	answer := pendingSummary{Kind: "PendingWorkloadsSummary", APIVersion: t.Group + "/" + t.Version, Items: make([]pendingWorkload, len(order.Pending))}
	for i, of := range order.Pending {
		answer.Items[i] = pendingWorkload{Metadata: namesOf{of.Name, of.Namespace}, LocalQueue: of.LocalQueue, Position: i}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	setHeaders(w)
	return h.write(w, r, id, string(body))
}

func (h *Handler) pending(ctx context.Context, id auth.Identity, t visibility.Target) (order cluster.PendingOrder, err error) {
	kinds, err := h.access.Cluster(t.Cluster)
	if err != nil {
		return order, err
	}
	if err := h.access.CheckDo(ctx, kinds, id, t, "get"); err != nil {
		return order, err
	}
	if !h.servesPending(kinds) {
		return order, reply.NotFound(noPending)
	}
	order, err = kinds.Cluster().PendingWorkloads(ctx, t.Name)
	switch {
	case apierrors.IsNotFound(err):
		return order, reply.NotFound(noPending)
	case err != nil:
		return order, reply.Unavailable("Kueue does not say who waits", time.Second, err)
	}
	return order, nil
}

const (
	noPending = "nobody says who waits in this queue"
	kueue     = "kueue.x-k8s.io"
)

// servesPending reports whether anybody is told of queues, and of Workloads, whose names the order has.
func (h *Handler) servesPending(kinds *cache.Kinds) bool {
	serves := kinds.Cluster().Serves
	return !h.opts.NoQueues && serves(kueue, "clusterqueues") && serves(kueue, "workloads")
}

// mayReadPending says whether Pending would answer.
func (h *Handler) mayReadPending(ctx context.Context, kinds *cache.Kinds, id auth.Identity, of authorizationv1.ResourceAttributes) (allowed bool, reason string, err error) {
	t := visibility.Target{Group: of.Group, Version: of.Version, Resource: of.Resource, Name: of.Name, Subresource: of.Subresource}
	if !h.servesPending(kinds) {
		return false, notShown, nil
	}
	if allowed, err = h.access.MayDo(ctx, id, t.Request(kinds.Cluster().Name(), "get")); err != nil || !allowed {
		return false, notShown, err
	}
	return true, "", nil
}

type pendingSummary struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Items      []pendingWorkload `json:"items"`
}

type pendingWorkload struct {
	Metadata   namesOf `json:"metadata"`
	LocalQueue string  `json:"localQueueName"`
	Position   int     `json:"positionInClusterQueue"`
}

type namesOf struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}
