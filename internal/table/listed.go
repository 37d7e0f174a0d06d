package table

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubecast/kubecast/internal/cluster"
)

// This file has the kinds each column of which prints its own cell.

// cell is a column and what prints it.
type cell struct {
	metav1.TableColumnDefinition
	print func(r *row, o *cluster.Object)
}

// withListed adds the kinds by their columns. A cell without a name has no column: the API server
// prints more cells than columns of some.
func withListed(tables map[groupResource]*Table) map[groupResource]*Table {
	for kind, cells := range listed {
		var heads columns
		for _, c := range cells {
			if c.Name != "" {
				heads = append(heads, c.TableColumnDefinition)
			}
		}
		tables[kind] = newTable(heads, func(r *row, o *cluster.Object) {
			for _, c := range cells {
				c.print(r, o)
			}
		})
	}
	return tables
}

// listed are the kinds by their columns.
var listed = map[groupResource][]cell{
	{"", "podtemplates"}: {
		named(),
		{column("Containers", "string", "Names of each container in the template."), containerNames("template")},
		{column("Images", "string", "Images referenced by each container in the template."), containerImages("template")},
		{column("Pod Labels", "string", "The labels for the pod template."), pairs("template.metadata.labels")},
	},
	{"policy", "poddisruptionbudgets"}: {
		named(),
		{column("Min Available", "string", "The minimum number of pods that must be available."), textOr("spec.minAvailable", "N/A")},
		{column("Max Unavailable", "string", "The maximum number of pods that may be unavailable."), textOr("spec.maxUnavailable", "N/A")},
		{column("Allowed Disruptions", "integer", "Calculated number of pods that may be disrupted at this time."), number("status.disruptionsAllowed")},
		aged(),
	},
	{"", "replicationcontrollers"}: {
		named(),
		{column("Desired", "integer", corev1.ReplicationControllerSpec{}.SwaggerDoc()["replicas"]), number("spec.replicas")},
		{column("Current", "integer", corev1.ReplicationControllerStatus{}.SwaggerDoc()["replicas"]), number("status.replicas")},
		{column("Ready", "integer", corev1.ReplicationControllerStatus{}.SwaggerDoc()["readyReplicas"]), number("status.readyReplicas")},
		aged(),
		{wide("Containers", "string", "Names of each container in the template."), containerNames("spec.template")},
		{wide("Images", "string", "Images referenced by each container in the template."), containerImages("spec.template")},
		{wide("Selector", "string", corev1.ReplicationControllerSpec{}.SwaggerDoc()["selector"]), pairs("spec.selector")},
	},
	{"batch", "cronjobs"}: {
		named(),
		{column("Schedule", "string", batchv1.CronJobSpec{}.SwaggerDoc()["schedule"]), text("spec.schedule")},
		{column("Timezone", "string", batchv1.CronJobSpec{}.SwaggerDoc()["timeZone"]), textOr("spec.timeZone", none)},
		{column("Suspend", "boolean", batchv1.CronJobSpec{}.SwaggerDoc()["suspend"]), trueOrFalse("spec.suspend")},
		{column("Active", "integer", batchv1.CronJobStatus{}.SwaggerDoc()["active"]), number("status.active.#")},
		{column("Last Schedule", "string", batchv1.CronJobStatus{}.SwaggerDoc()["lastScheduleTime"]), ago("status.lastScheduleTime", none)},
		aged(),
		{wide("Containers", "string", "Names of each container in the template."), containerNames("spec.jobTemplate.spec.template")},
		{wide("Images", "string", "Images referenced by each container in the template."), containerImages("spec.jobTemplate.spec.template")},
		{wide("Selector", "string", batchv1.JobSpec{}.SwaggerDoc()["selector"]), func(r *row, o *cluster.Object) { r.text(selector(o.Path("spec.jobTemplate.spec.selector"))) }},
	},
	{"networking.k8s.io", "ingresses"}: {
		named(),
		{column("Class", "string", "The name of the IngressClass resource that should be used for additional configuration"), textOr("spec.ingressClassName", none)},
		{column("Hosts", "string", "Hosts that incoming requests are matched against before the ingress rule"), hosts},
		{column("Address", "string", "Address is a list containing ingress points for the load-balancer"), func(r *row, o *cluster.Object) {
			r.text(strings.Join(ingresses(o.Path("status")), ","))
		}},
		{column("Ports", "string", "Ports of TLS configurations that open"), func(r *row, o *cluster.Object) {
			if o.Path("spec.tls.#").Int() > 0 {
				r.text("80, 443")
			} else {
				r.text("80")
			}
		}},
		aged(),
	},
	{"networking.k8s.io", "ingressclasses"}: {
		{nameColumn(), defaultName("ingressclass.kubernetes.io/is-default-class")},
		{column("Controller", "string", "Controller that is responsible for handling this class"), text("spec.controller")},
		{column("Parameters", "string", "A reference to a resource with additional parameters"), func(r *row, o *cluster.Object) {
			p := o.Path("spec.parameters")
			if !isSet(p) {
				r.text(none)
				return
			}
			kind := p.Get("kind").Str
			if group := p.Get("apiGroup"); isSet(group) {
				kind += "." + group.Str
			}
			r.text(kind + "/" + p.Get("name").Str)
		}},
		aged(),
	},
	{"", "endpoints"}: {
		named(),
		//lint:ignore SA1019 what is deprecated is printed, too
		{column("Endpoints", "string", corev1.Endpoints{}.SwaggerDoc()["subsets"]), endpoints},
		aged(),
	},
	{"discovery.k8s.io", "endpointslices"}: {
		named(),
		{column("AddressType", "string", discoveryv1.EndpointSlice{}.SwaggerDoc()["addressType"]), text("addressType")},
		{column("Ports", "string", discoveryv1.EndpointSlice{}.SwaggerDoc()["ports"]), slicePorts},
		{column("Endpoints", "string", discoveryv1.EndpointSlice{}.SwaggerDoc()["endpoints"]), sliceEndpoints},
		aged(),
	},
	{"", "secrets"}: {
		named(),
		{column("Type", "string", corev1.Secret{}.SwaggerDoc()["type"]), text("type")},
		{column("Data", "string", corev1.Secret{}.SwaggerDoc()["data"]), func(r *row, o *cluster.Object) { r.number(count(o.Path("data"))) }},
		aged(),
	},
	{"", "serviceaccounts"}: {named(), aged()},
	{"", "persistentvolumes"}: {
		named(),
		{column("Capacity", "string", corev1.PersistentVolumeSpec{}.SwaggerDoc()["capacity"]), func(r *row, o *cluster.Object) {
			r.text(quantity(o.Path("spec.capacity.storage").Str))
		}},
		{column("Access Modes", "string", corev1.PersistentVolumeSpec{}.SwaggerDoc()["accessModes"]), func(r *row, o *cluster.Object) {
			r.text(accessModes(o.Path("spec.accessModes")))
		}},
		{column("Reclaim Policy", "string", corev1.PersistentVolumeSpec{}.SwaggerDoc()["persistentVolumeReclaimPolicy"]), text("spec.persistentVolumeReclaimPolicy")},
		{column("Status", "string", corev1.PersistentVolumeStatus{}.SwaggerDoc()["phase"]), func(r *row, o *cluster.Object) {
			r.text(volumeStatus(o))
		}},
		{column("Claim", "string", corev1.PersistentVolumeSpec{}.SwaggerDoc()["claimRef"]), func(r *row, o *cluster.Object) {
			claim := o.Path("spec.claimRef")
			if !isSet(claim) {
				r.text("")
				return
			}
			r.text(claim.Get("namespace").Str + "/" + claim.Get("name").Str)
		}},
		{column("StorageClass", "string", "StorageClass of the pv"), func(r *row, o *cluster.Object) {
			if old := annotation(o, corev1.BetaStorageClassAnnotation); old.Exists() {
				r.text(old.Str)
			} else {
				r.text(o.Path("spec.storageClassName").Str)
			}
		}},
		{column("VolumeAttributesClass", "string", "VolumeAttributesClass of the pv"), textOr("spec.volumeAttributesClassName", unset)},
		{column("Reason", "string", corev1.PersistentVolumeStatus{}.SwaggerDoc()["reason"]), text("status.reason")},
		aged(),
		{wide("VolumeMode", "string", corev1.PersistentVolumeSpec{}.SwaggerDoc()["volumeMode"]), textOr("spec.volumeMode", unset)},
	},
	{"autoscaling", "horizontalpodautoscalers"}: {
		named(),
		{column("Reference", "string", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["scaleTargetRef"]), func(r *row, o *cluster.Object) {
			target := o.Path("spec.scaleTargetRef")
			r.text(target.Get("kind").Str + "/" + target.Get("name").Str)
		}},
		{column("Targets", "string", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["metrics"]), scaleTargets},
		{column("MinPods", "string", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["minReplicas"]), textOr("spec.minReplicas", unset)},
		{column("MaxPods", "string", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["maxReplicas"]), number("spec.maxReplicas")},
		{column("Replicas", "string", autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"]), number("status.currentReplicas")},
		aged(),
	},
	{"networking.k8s.io", "networkpolicies"}: {
		named(),
		{column("Pod-Selector", "string", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"]), func(r *row, o *cluster.Object) {
			r.text(selector(o.Path("spec.podSelector")))
		}},
		aged(),
	},
	{"rbac.authorization.k8s.io", "rolebindings"}:        bindingCells(rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"], "roleBinding"),
	{"rbac.authorization.k8s.io", "clusterrolebindings"}: bindingCells(rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"], "clusterRoleBinding"),
	{"certificates.k8s.io", "certificatesigningrequests"}: {
		named(),
		aged(),
		{column("SignerName", "string", certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"]), textOrNone("spec.signerName")},
		{column("Requestor", "string", certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["request"]), text("spec.username")},
		{column("RequestedDuration", "string", certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"]), func(r *row, o *cluster.Object) {
			if seconds := o.Path("spec.expirationSeconds"); isSet(seconds) {
				r.text(duration.HumanDuration(time.Duration(seconds.Int()) * time.Second))
			} else {
				r.text(none)
			}
		}},
		{column("Condition", "string", certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"]), signingCondition},
	},
	{"certificates.k8s.io", "clustertrustbundles"}: {
		named(),
		{column("SignerName", "string", certificatesv1beta1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"]), textOrNone("spec.signerName")},
	},
	{"certificates.k8s.io", "podcertificaterequests"}: {
		named(),
		{column("PodName", "string", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["podName"]), text("spec.podName")},
		{column("ServiceAccountName", "string", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["serviceAccountName"]), text("spec.serviceAccountName")},
		{column("NodeName", "string", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["nodeName"]), text("spec.nodeName")},
		{column("SignerName", "string", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["signerName"]), text("spec.signerName")},
		{column("State", "string", "Is the request Pending, Issued, Denied, or Failed?"), func(r *row, o *cluster.Object) {
			r.text(lastOf(o, "Pending", "Issued", "Denied", "Failed"))
		}},
		{column("UnverifiedUserAnnotations", "string", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["unverifiedUserAnnotations"]), pairs("spec.unverifiedUserAnnotations")},
	},
	{"coordination.k8s.io", "leases"}: {
		named(),
		{column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]), text("spec.holderIdentity")},
		aged(),
	},
	{"coordination.k8s.io", "leasecandidates"}: {
		named(),
		{column("LeaseName", "string", coordinationv1alpha2.LeaseCandidateSpec{}.SwaggerDoc()["leaseName"]), text("spec.leaseName")},
		{column("BinaryVersion", "string", ""), text("spec.binaryVersion")},
		{column("EmulationVersion", "string", ""), text("spec.emulationVersion")},
		aged(),
	},
	{"storage.k8s.io", "storageclasses"}: {
		{nameColumn(), defaultName("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")},
		{column("Provisioner", "string", storagev1.StorageClass{}.SwaggerDoc()["provisioner"]), text("provisioner")},
		{column("ReclaimPolicy", "string", storagev1.StorageClass{}.SwaggerDoc()["reclaimPolicy"]), textOr("reclaimPolicy", "Delete")},
		{column("VolumeBindingMode", "string", storagev1.StorageClass{}.SwaggerDoc()["volumeBindingMode"]), textOr("volumeBindingMode", "Immediate")},
		{column("AllowVolumeExpansion", "string", storagev1.StorageClass{}.SwaggerDoc()["allowVolumeExpansion"]), boolean("allowVolumeExpansion", false)},
		aged(),
	},
	{"storage.k8s.io", "volumeattributesclasses"}: {
		named(),
		{column("DriverName", "string", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"]), text("driverName")},
		aged(),
	},
	{"apps", "controllerrevisions"}: {
		named(),
		{column("Controller", "string", "Controller of the object"), controllerOf},
		{column("Revision", "string", appsv1.ControllerRevision{}.SwaggerDoc()["revision"]), number("revision")},
		aged(),
	},
	{"", "resourcequotas"}: {
		named(),
		{column("Request", "string", "Request represents a minimum amount of cpu/memory that a container may consume."), quota(false)},
		{column("Limit", "string", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."), quota(true)},
		aged(),
	},
	{"scheduling.k8s.io", "priorityclasses"}: {
		named(),
		{column("Value", "integer", schedulingv1.PriorityClass{}.SwaggerDoc()["value"]), number("value")},
		{column("Global-Default", "boolean", schedulingv1.PriorityClass{}.SwaggerDoc()["globalDefault"]), boolean("globalDefault", false)},
		aged(),
		{column("PreemptionPolicy", "string", schedulingv1.PriorityClass{}.SwaggerDoc()["preemptionPolicy"]), text("preemptionPolicy")},
	},
	{"node.k8s.io", "runtimeclasses"}: {
		named(),
		{column("Handler", "string", ""), text("handler")},
		aged(),
	},
	{"storage.k8s.io", "volumeattachments"}: {
		named(),
		{metav1.TableColumnDefinition{Name: "Attacher", Type: "string", Format: "name", Description: storagev1.VolumeAttachmentSpec{}.SwaggerDoc()["attacher"]}, text("spec.attacher")},
		{column("PV", "string", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"]), text("spec.source.persistentVolumeName")},
		{column("Node", "string", storagev1.VolumeAttachmentSpec{}.SwaggerDoc()["nodeName"]), text("spec.nodeName")},
		{column("Attached", "boolean", storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"]), boolean("status.attached", false)},
		aged(),
	},
	{"storage.k8s.io", "csinodes"}: {
		named(),
		{column("Drivers", "integer", "Drivers indicates the number of CSI drivers registered on the node"), number("spec.drivers.#")},
		aged(),
	},
	{"storage.k8s.io", "csidrivers"}: {
		named(),
		{column("AttachRequired", "boolean", storagev1.CSIDriverSpec{}.SwaggerDoc()["attachRequired"]), boolean("spec.attachRequired", true)},
		{column("PodInfoOnMount", "boolean", storagev1.CSIDriverSpec{}.SwaggerDoc()["podInfoOnMount"]), boolean("spec.podInfoOnMount", false)},
		{column("StorageCapacity", "boolean", storagev1.CSIDriverSpec{}.SwaggerDoc()["storageCapacity"]), boolean("spec.storageCapacity", false)},
		{column("TokenRequests", "string", storagev1.CSIDriverSpec{}.SwaggerDoc()["tokenRequests"]), func(r *row, o *cluster.Object) {
			requests := o.Path("spec.tokenRequests")
			if !isSet(requests) {
				r.text(unset)
				return
			}
			r.text(strings.Join(strs(requests.Get("#.audience")), ","))
		}},
		{column("RequiresRepublish", "boolean", storagev1.CSIDriverSpec{}.SwaggerDoc()["requiresRepublish"]), boolean("spec.requiresRepublish", false)},
		{column("Modes", "string", storagev1.CSIDriverSpec{}.SwaggerDoc()["volumeLifecycleModes"]), func(r *row, o *cluster.Object) {
			r.text(or(strings.Join(strs(o.Path("spec.volumeLifecycleModes")), ","), none))
		}},
		aged(),
	},
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations"}:     webhookCells,
	{"admissionregistration.k8s.io", "validatingwebhookconfigurations"}:   webhookCells,
	{"admissionregistration.k8s.io", "validatingadmissionpolicies"}:       policyCells("Validations", "Validations indicates the number of validation rules defined in this configuration", "spec.validations.#"),
	{"admissionregistration.k8s.io", "mutatingadmissionpolicies"}:         policyCells("Mutations", "Mutation indicates the number of mutations rules defined in this configuration", "spec.mutations.#"),
	{"admissionregistration.k8s.io", "validatingadmissionpolicybindings"}: policyBindingCells,
	{"admissionregistration.k8s.io", "mutatingadmissionpolicybindings"}:   policyBindingCells,
	{"flowcontrol.apiserver.k8s.io", "flowschemas"}: {
		named(),
		{column("PriorityLevel", "string", flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"]), text("spec.priorityLevelConfiguration.name")},
		{column("MatchingPrecedence", "string", flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["matchingPrecedence"]), number("spec.matchingPrecedence")},
		{column("DistinguisherMethod", "string", flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["distinguisherMethod"]), textOr("spec.distinguisherMethod.type", none)},
		aged(),
		{column("MissingPL", "string", "references a broken or non-existent PriorityLevelConfiguration"), func(r *row, o *cluster.Object) {
			r.text(or(conditionStatus(o.Path("status.conditions"), "Dangling"), "?"))
		}},
	},
	{"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"}: {
		named(),
		{column("Type", "string", flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"]), text("spec.type")},
		{column("NominalConcurrencyShares", "string", flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"]), within("spec.limited", "nominalConcurrencyShares")},
		{column("Queues", "string", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queues"]), within("spec.limited.limitResponse.queuing", "queues")},
		{column("HandSize", "string", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["handSize"]), within("spec.limited.limitResponse.queuing", "handSize")},
		{column("QueueLengthLimit", "string", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queueLengthLimit"]), within("spec.limited.limitResponse.queuing", "queueLengthLimit")},
		aged(),
	},
	{"internal.apiserver.k8s.io", "storageversions"}: {
		named(),
		{column("CommonEncodingVersion", "string", apiserverinternalv1alpha1.StorageVersionStatus{}.SwaggerDoc()["commonEncodingVersion"]), textOr("status.commonEncodingVersion", unset)},
		{column("StorageVersions", "string", apiserverinternalv1alpha1.StorageVersionStatus{}.SwaggerDoc()["storageVersions"]), func(r *row, o *cluster.Object) {
			var all []string
			each(o.Path("status.storageVersions"), func(v gjson.Result) bool {
				all = append(all, v.Get("apiServerID").Str+"="+v.Get("encodingVersion").Str)
				return true
			})
			r.text(firstThree(all))
		}},
		aged(),
	},
	{"resource.k8s.io", "deviceclasses"}:          {named(), aged()},
	{"resource.k8s.io", "resourceclaimtemplates"}: {named(), aged()},
	{"resource.k8s.io", "resourceclaims"}: {
		named(),
		{column("State", "string", "A summary of the current state (allocated, pending, reserved, etc.)."), claimState},
		aged(),
	},
	{"resource.k8s.io", "resourceslices"}: {
		named(),
		{column("Node", "string", resourcev1.ResourceSliceSpec{}.SwaggerDoc()["nodeName"]), text("spec.nodeName")},
		{column("Driver", "string", resourcev1.ResourceSliceSpec{}.SwaggerDoc()["driver"]), text("spec.driver")},
		{column("Pool", "string", resourcev1.ResourcePool{}.SwaggerDoc()["name"]), text("spec.pool.name")},
		aged(),
	},
	{"apiregistration.k8s.io", "apiservices"}: {
		named(),
		{column("Service", "string", "The reference to the service that hosts this API endpoint."), func(r *row, o *cluster.Object) {
			if service := o.Path("spec.service"); isSet(service) {
				r.text(service.Get("namespace").Str + "/" + service.Get("name").Str)
			} else {
				r.text("Local")
			}
		}},
		{column("Available", "string", "Whether this service is available."), serviceAvailable},
		aged(),
	},
	{"networking.k8s.io", "servicecidrs"}: {
		named(),
		{column("CIDRs", "string", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"]), func(r *row, o *cluster.Object) {
			r.text(strings.Join(strs(o.Path("spec.cidrs")), ","))
		}},
		aged(),
	},
	{"networking.k8s.io", "ipaddresses"}: {
		named(),
		{column("ParentRef", "string", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"]), func(r *row, o *cluster.Object) {
			parent := o.Path("spec.parentRef")
			if !isSet(parent) {
				r.text(none)
				return
			}
			of := schema.GroupResource{Group: parent.Get("group").Str, Resource: parent.Get("resource").Str}
			name := strings.ToLower(of.String())
			if namespace := parent.Get("namespace").Str; namespace != "" {
				name += "/" + namespace
			}
			r.text(name + "/" + parent.Get("name").Str)
		}},
		{print: func(r *row, o *cluster.Object) { r.age(o) }},
	},
	{"storagemigration.k8s.io", "storageversionmigrations"}: {
		{column("Name", "string", metaDoc["name"]), func(r *row, o *cluster.Object) { r.name(o) }},
		{column("Resource", "string", "GroupResource to migrate"), func(r *row, o *cluster.Object) {
			r.text(schema.GroupResource{Group: o.Path("spec.resource.group").Str, Resource: o.Path("spec.resource.resource").Str}.String())
		}},
		{column("Status", "string", "Status of the migration"), func(r *row, o *cluster.Object) {
			status := "Unknown"
			each(o.Path("status.conditions"), func(c gjson.Result) bool {
				if kind := c.Get("type").Str; c.Get("status").Str == "True" && (kind == "Running" || kind == "Failed" || kind == "Succeeded") {
					status = kind
				}
				return true
			})
			r.text(status)
		}},
	},
	{"resource.k8s.io", "devicetaintrules"}: {
		named(),
		{column("Key", "string", resourcev1.DeviceTaint{}.SwaggerDoc()["key"]), text("spec.taint.key")},
		{column("Value", "string", resourcev1.DeviceTaint{}.SwaggerDoc()["value"]), text("spec.taint.value")},
		{column("Effect", "string", resourcev1.DeviceTaint{}.SwaggerDoc()["effect"]), text("spec.taint.effect")},
		{column("TimeAdded", "string", resourcev1.DeviceTaint{}.SwaggerDoc()["timeAdded"]), ago("spec.taint.timeAdded", "")},
		aged(),
	},
}

// webhookCells are the columns of both kinds of webhooks.
var webhookCells = []cell{
	named(),
	{column("Webhooks", "integer", "Webhooks indicates the number of webhooks registered in this configuration"), number("webhooks.#")},
	aged(),
}

func policyCells(name, description, path string) []cell {
	return []cell{
		named(),
		{column(name, "integer", description), number(path)},
		{column("ParamKind", "string", "ParamKind specifies the kind of resources used to parameterize this policy"), func(r *row, o *cluster.Object) {
			if kind := o.Path("spec.paramKind"); isSet(kind) {
				r.text(kind.Get("apiVersion").Str + "/" + kind.Get("kind").Str)
			} else {
				r.text(unset)
			}
		}},
		aged(),
	}
}

var policyBindingCells = []cell{
	named(),
	{column("PolicyName", "string", "PolicyName indicates the policy definition which the policy binding binded to"), text("spec.policyName")},
	{column("ParamRef", "string", "ParamRef indicates the param resource which sets the configuration param"), func(r *row, o *cluster.Object) {
		ref := o.Path("spec.paramRef")
		name, namespace, selected := ref.Get("name").Str, ref.Get("namespace").Str, ref.Get("selector")
		switch {
		case name != "":
			r.text(or(namespace, "*") + "/" + name)
		case isSet(selected):
			var s admissionv1.ParamRef
			_ = json.Unmarshal([]byte(ref.Raw), &s) // what cannot be read selects nothing
			r.text(s.Selector.String())
		default:
			r.text(unset)
		}
	}},
	aged(),
}

func bindingCells(roleRef, kind string) []cell {
	subjects := func(kind string, name func(gjson.Result) string) func(*row, *cluster.Object) {
		return func(r *row, o *cluster.Object) {
			var names []string
			each(o.Path("subjects"), func(s gjson.Result) bool {
				if s.Get("kind").Str == kind {
					names = append(names, name(s))
				}
				return true
			})
			r.text(strings.Join(names, ", "))
		}
	}
	plain := func(s gjson.Result) string { return s.Get("name").Str }
	return []cell{
		named(),
		{column("Role", "string", roleRef), func(r *row, o *cluster.Object) { r.text(o.Path("roleRef.kind").Str + "/" + o.Path("roleRef.name").Str) }},
		aged(),
		{wide("Users", "string", "Users in the "+kind), subjects("User", plain)},
		{wide("Groups", "string", "Groups in the "+kind), subjects("Group", plain)},
		{wide("ServiceAccounts", "string", "ServiceAccounts in the "+kind), subjects("ServiceAccount", func(s gjson.Result) string {
			return s.Get("namespace").Str + "/" + s.Get("name").Str
		})},
	}
}
