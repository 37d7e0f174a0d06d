package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// IsReview reports whether a review is posted to a path.
func IsReview(path string) bool {
	t, ok := visibility.Parse(path)
	_, isReview := cluster.SelfReviews[resourceOf(t)]
	return ok && isReview && t.Namespace == "" && t.Name == ""
}

func resourceOf(t visibility.Target) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

// maxReview is the size of a review's body in bytes.
const maxReview = 16 << 10

// PostReview answers a review that was posted (Kubernetes' authorization.k8s.io/v1 and
// authentication.k8s.io/v1). The gateway's own rules decide, and so does what the gateway serves:
// it says yes where it would show the caller something.
func (h *Handler) PostReview(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	t, _ := visibility.Parse(r.URL.Path)
	kinds, err := h.access.Cluster(t.Cluster)
	if err != nil {
		return err
	}
	if id.Anonymous { // as Kubernetes' role system:basic-user has it
		return access.Forbidden(id, t, "create")
	}
	release, err := h.opts.Turns.Take(r.Context(), id.QuotaOwner())
	if err != nil {
		return err
	}
	defer release()
	encoder := reply.Choose(r.Header, encoderOf)
	if encoder == nil {
		return reply.NotAcceptable("a review can be answered as application/json and application/vnd.kubernetes.protobuf")
	}
	gvk := cluster.SelfReviews[resourceOf(t)]
	review, err := readReview(r, gvk)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(auth.WithQuestions(r.Context(), MaxQuestions), h.opts.SyncTimeout)
	defer cancel()
	switch review := review.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		err = h.reviewAccess(ctx, kinds, id, review)
	case *authorizationv1.SelfSubjectRulesReview:
		err = h.reviewRules(ctx, kinds, id, review)
	case *authenticationv1.SelfSubjectReview:
		review.Status.UserInfo = authenticationv1.UserInfo{Username: id.Username, Groups: id.Groups}
	}
	if err != nil {
		return err
	}
	return writeReview(w, encoder, gvk, review)
}

// writeReview answers with a review of a kind.
func writeReview(w http.ResponseWriter, encoder *runtime.SerializerInfo, gvk schema.GroupVersionKind, review runtime.Object) error {
	review.GetObjectKind().SetGroupVersionKind(gvk)
	var body bytes.Buffer
	if err := encoder.Serializer.Encode(review, &body); err != nil {
		return err
	}
	w.Header().Set("Content-Type", encoder.MediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body.Bytes()) // a client that has gone is no error
	return nil
}

// encoderOf returns how to encode for a media range; nil if the gateway cannot.
func encoderOf(media string, params map[string]string) *runtime.SerializerInfo {
	if media == "application/*" || media == "*/*" {
		media = runtime.ContentTypeJSON
	}
	if params["as"] != "" || media != runtime.ContentTypeJSON && media != runtime.ContentTypeProtobuf {
		return nil
	}
	known := scheme.Codecs.SupportedMediaTypes()
	i := slices.IndexFunc(known, func(info runtime.SerializerInfo) bool { return info.MediaType == media })
	return &known[i]
}

// readReview reads a request's body, which is of a kind, and says so or nothing.
func readReview(r *http.Request, gvk schema.GroupVersionKind) (runtime.Object, error) {
	media, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), runtime.ContentTypeJSON))
	decoder := encoderOf(media, nil)
	if err != nil || strings.Contains(media, "*") || decoder == nil {
		return nil, &reply.Error{
			Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "the body of a review is application/json or application/vnd.kubernetes.protobuf",
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxReview))
	if err != nil {
		return nil, reply.Unreadable(err)
	}
	review, got, err := decoder.Serializer.Decode(body, &gvk, nil)
	if err != nil || *got != gvk {
		return nil, reply.BadRequest("the body is no %s of %s", gvk.Kind, gvk.GroupVersion())
	}
	return review, nil
}

// invalid is a 422 in the API server's own words.
func invalid(kind string, problem *field.Error) error {
	status := apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind(kind).GroupKind(), "", field.ErrorList{problem}).Status()
	return &reply.Error{Code: int(status.Code), Reason: status.Reason, Message: status.Message, Details: status.Details}
}

// Reasons why something is not allowed. They are the same whether a kind does not exist or may not be seen.
const (
	notShown = "the gateway shows this user nothing of it"
	readOnly = "the gateway only reads: the Kubernetes API server itself says who may change something"
)

func (h *Handler) reviewAccess(ctx context.Context, kinds *cache.Kinds, id auth.Identity, review *authorizationv1.SelfSubjectAccessReview) (err error) {
	of, path, status := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes, &review.Status
	*status = authorizationv1.SubjectAccessReviewStatus{}
	switch {
	case of != nil && path != nil:
		return invalid("SelfSubjectAccessReview", field.Invalid(field.NewPath("spec", "nonResourceAttributes"), "", "cannot be specified in combination with resourceAttributes"))
	case of == nil && path == nil:
		return invalid("SelfSubjectAccessReview", field.Invalid(field.NewPath("spec", "resourceAttributes"), "", "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	case path != nil:
		status.Allowed, status.Reason, err = h.mayReadPath(ctx, kinds, id, *path)
	default:
		status.Allowed, status.Reason, err = h.mayRead(ctx, kinds, id, *of)
	}
	return err
}

// The verbs of reading.
var readVerbs = []string{"get", "list", "watch"}

func (h *Handler) mayRead(ctx context.Context, kinds *cache.Kinds, id auth.Identity, of authorizationv1.ResourceAttributes) (allowed bool, reason string, err error) {
	if of.Version == "*" {
		of.Version = ""
	}
	switch {
	case of.Verb == "create" && of.Subresource == "" && cluster.IsSelfReview(of.Group, of.Resource):
		return true, "", nil
	case id.Gateway && of.Verb == "create" && of.Subresource == "" && isReviewOfOthers(of.Group, of.Resource):
		return true, "", nil
	case id.Gateway && of.Verb == "get" && of.Group == cluster.VisibilityGroup && of.Resource == "clusterqueues" && of.Subresource == "pendingworkloads":
		return h.mayReadPending(ctx, kinds, id, of)
	case !slices.Contains(readVerbs, of.Verb):
		return false, readOnly, nil
	case of.Subresource != "" && (of.Group != "" || of.Resource != "pods" || of.Subresource != "log" || of.Verb != "get"):
		return false, "the gateway serves objects and logs, and no other subresources", nil
	case of.Resource == "*" || of.Group == "*":
		return false, "the gateway answers for one resource at a time", nil
	}
	t := visibility.Target{Group: of.Group, Version: of.Version, Resource: of.Resource, Namespace: of.Namespace, Name: of.Name, Subresource: of.Subresource}
	allowed, whole, err := h.access.May(ctx, kinds, id, t, of.Verb)
	switch {
	case err != nil:
		return false, "", err
	case !allowed:
		return false, notShown, nil
	case !whole:
		return true, "the gateway shows this user a part of it", nil
	}
	return true, "", nil
}

func (h *Handler) mayReadPath(ctx context.Context, kinds *cache.Kinds, id auth.Identity, of authorizationv1.NonResourceAttributes) (allowed bool, reason string, err error) {
	switch {
	case of.Verb != "get" && of.Verb != "head":
		return false, readOnly, nil
	case !isServed(of.Path):
		return false, notShown, nil
	}
	if allowed, err = h.access.MayRead(ctx, kinds, id, of.Path); err != nil || !allowed {
		return false, notShown, err
	}
	return true, "", nil
}

// HealthPaths are where tools ask whether an API server is well.
var HealthPaths = []string{"/healthz", "/livez", "/readyz"}

// isServed reports whether the gateway answers at a path that is not a resource's.
func isServed(path string) bool {
	d, ok := ParseDocument(path)
	return ok && d.cluster == "" || slices.Contains(HealthPaths, path)
}

// servedPaths are the paths whose permissions are told by their names, as Kubernetes' own roles name them.
var servedPaths = append([]string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"}, HealthPaths...)

// reviewRules says what the caller may read in a namespace. What cannot be decided in time is left
// out, and the answer is then incomplete.
func (h *Handler) reviewRules(ctx context.Context, kinds *cache.Kinds, id auth.Identity, review *authorizationv1.SelfSubjectRulesReview) error {
	namespace := review.Spec.Namespace
	if namespace == "" {
		return reply.BadRequest("no namespace on request")
	}
	served, err := kinds.Cluster().Kinds(ctx)
	if err != nil {
		return err
	}
	review.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	rules, failed := make([][]authorizationv1.ResourceRule, len(served)), make([]error, len(served)+1)
	var asking errgroup.Group
	asking.SetLimit(myKindsAtOnce)
	for i, kind := range served {
		asking.Go(func() error {
			rules[i], failed[i] = h.rulesOf(ctx, kinds, id, kind, namespace)
			return nil
		})
	}
	_ = asking.Wait() // none returns an error
	for _, rule := range slices.Concat(rules...) {
		review.Status.ResourceRules = withRule(review.Status.ResourceRules, rule)
	}
	for gvr := range cluster.SelfReviews {
		review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: []string{"create"}, APIGroups: []string{gvr.Group}, Resources: []string{gvr.Resource},
		})
	}
	for _, path := range servedPaths {
		allowed, err := h.access.MayRead(ctx, kinds, id, path)
		if allowed {
			review.Status.NonResourceRules = append(review.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"get"}, NonResourceURLs: []string{path}})
		}
		failed[len(served)] = errors.Join(failed[len(served)], err)
	}
	if err := errors.Join(failed...); err != nil {
		h.opts.Log.Warn("what a caller may read cannot be decided for all kinds", "cluster", kinds.Cluster().Name(), "namespace", namespace, "error", err)
		review.Status.Incomplete = true
		review.Status.EvaluationError = "some permissions could not be decided: ask for single ones, or again"
	}
	return nil
}

// rulesOf are what may be read of one kind. As at the API server, what a role in a namespace allows is told there even
// of kinds that are in none.
func (h *Handler) rulesOf(ctx context.Context, kinds *cache.Kinds, id auth.Identity, kind cluster.Kind, namespace string) (rules []authorizationv1.ResourceRule, err error) {
	asked := make([]auth.Request, 0, len(readVerbs)+1)
	for _, verb := range readVerbs {
		if verb == "watch" && !kind.Watchable {
			continue
		}
		asked = append(asked, auth.Request{Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Namespace: namespace})
	}
	if kind.Group == "" && kind.Resource == "pods" {
		asked = append(asked, auth.Request{Verb: "get", Version: kind.Version, Resource: "pods", Subresource: "log", Namespace: namespace})
	}
	for _, about := range asked {
		scope, err := h.access.ScopeIn(ctx, id, kinds, about)
		if err != nil {
			return rules, fmt.Errorf("%s: %w", kind, err)
		}
		resource := about.Resource
		if about.Subresource != "" {
			resource += "/" + about.Subresource
		}
		rule := authorizationv1.ResourceRule{Verbs: []string{about.Verb}, APIGroups: []string{kind.Group}, Resources: []string{resource}}
		if scope = scope.In(namespace); !scope.SeesNamespace(namespace) {
			if rule.ResourceNames = scope.Names[namespace]; rule.ResourceNames == nil {
				continue
			}
		}
		same := slices.IndexFunc(rules, func(r authorizationv1.ResourceRule) bool {
			return slices.Equal(r.ResourceNames, rule.ResourceNames) && slices.Equal(r.Resources, rule.Resources)
		})
		if same < 0 {
			rules = append(rules, rule)
		} else {
			rules[same].Verbs = append(rules[same].Verbs, about.Verb)
		}
	}
	return rules, nil
}

// withRule adds a rule about one kind to that which says the same of other kinds of its group, if there is one.
func withRule(rules []authorizationv1.ResourceRule, rule authorizationv1.ResourceRule) []authorizationv1.ResourceRule {
	for i, r := range rules {
		if slices.Equal(r.Verbs, rule.Verbs) && slices.Equal(r.APIGroups, rule.APIGroups) && slices.Equal(r.ResourceNames, rule.ResourceNames) {
			rules[i].Resources = append(r.Resources, rule.Resources...)
			return rules
		}
	}
	return append(rules, rule)
}
