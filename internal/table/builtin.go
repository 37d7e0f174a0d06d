package table

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cluster"
)

type groupResource struct{ group, name string }

// builtin are the kinds with printers of their own. The fields that these read exist in all served versions of the
// kind.
var builtin = withListed(map[groupResource]*Table{
	{"", "pods"}:                   newTable(podColumns(), printPod),
	{"batch", "jobs"}:              newTable(jobColumns(), printJob),
	{"apps", "deployments"}:        newTable(deploymentColumns(), printDeployment),
	{"apps", "replicasets"}:        newTable(replicaSetColumns(), printReplicaSet),
	{"apps", "statefulsets"}:       newTable(statefulSetColumns(), printStatefulSet),
	{"apps", "daemonsets"}:         newTable(daemonSetColumns(), printDaemonSet),
	{"", "nodes"}:                  newTable(nodeColumns(), printNode),
	{"", "services"}:               newTable(serviceColumns(), printService),
	{"", "namespaces"}:             newTable(namespaceColumns(), printNamespace),
	{"", "events"}:                 newTable(eventColumns(), printEvent(coreEvent)),
	{"events.k8s.io", "events"}:    newTable(eventColumns(), printEvent(newEvent)),
	{"", "configmaps"}:             newTable(configMapColumns(), printConfigMap),
	{"", "persistentvolumeclaims"}: newTable(claimColumns(), printClaim),
	{"metrics.k8s.io", "pods"}:     newTable(measuredColumns(), printMeasured),
	{"metrics.k8s.io", "nodes"}:    newTable(measuredColumns(), printMeasured),
})

// plain prints all other kinds.
var plain = newTable([]metav1.TableColumnDefinition{
	nameColumn(),
	{Name: "Created At", Type: "date", Description: metaDoc["creationTimestamp"]},
}, func(r *row, o *cluster.Object) {
	r.name(o)
	created := time.Time{}
	if o.Created() != 0 {
		created = time.Unix(o.Created(), 0)
	}
	r.text(created.UTC().Format(time.RFC3339))
})

// The descriptions of columns come from the documentation of the API types, as at the API server.
var metaDoc = metav1.ObjectMeta{}.SwaggerDoc()

type columns = []metav1.TableColumnDefinition

func nameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metaDoc["name"]}
}

func ageColumn() metav1.TableColumnDefinition {
	return column("Age", "string", metaDoc["creationTimestamp"])
}

func column(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

// wide is a column that kubectl shows with -o wide.
func wide(name, kind, description string) metav1.TableColumnDefinition {
	c := column(name, kind, description)
	c.Priority = 1
	return c
}

// templateColumns are columns of the kinds that make pods.
func templateColumns() columns {
	return columns{
		wide("Containers", "string", "Names of each container in the template."),
		wide("Images", "string", "Images referenced by each container in the template."),
	}
}

func podColumns() columns {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return columns{
		nameColumn(),
		column("Ready", "string", "The aggregate readiness state of this pod for accepting traffic."),
		column("Status", "string", "The aggregate status of the containers in this pod."),
		column("Restarts", "string", "The number of times the containers in this pod have been restarted and when the "+
			"last container in this pod has restarted."),
		ageColumn(),
		wide("IP", "string", status["podIP"]),
		wide("Node", "string", spec["nodeName"]),
		wide("Nominated Node", "string", status["nominatedNodeName"]),
		wide("Readiness Gates", "string", spec["readinessGates"]),
	}
}

func jobColumns() columns {
	return append(append(columns{
		nameColumn(),
		column("Status", "string", "Status of the job."),
		column("Completions", "string", batchv1.JobStatus{}.SwaggerDoc()["succeeded"]),
		column("Duration", "string", "Time required to complete the job."),
		ageColumn(),
	}, templateColumns()...), wide("Selector", "string", batchv1.JobSpec{}.SwaggerDoc()["selector"]))
}

func deploymentColumns() columns {
	status := appsv1.DeploymentStatus{}.SwaggerDoc()
	return append(append(columns{
		nameColumn(),
		column("Ready", "string", "Number of the pod with ready state"),
		column("Up-to-date", "string", status["updatedReplicas"]),
		column("Available", "string", status["availableReplicas"]),
		ageColumn(),
	}, templateColumns()...), wide("Selector", "string", appsv1.DeploymentSpec{}.SwaggerDoc()["selector"]))
}

func replicaSetColumns() columns {
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	return append(append(columns{
		nameColumn(),
		column("Desired", "integer", spec["replicas"]),
		column("Current", "integer", status["replicas"]),
		column("Ready", "integer", status["readyReplicas"]),
		ageColumn(),
	}, templateColumns()...), wide("Selector", "string", spec["selector"]))
}

func statefulSetColumns() columns {
	return append(columns{
		nameColumn(),
		column("Ready", "string", "Number of the pod with ready state"),
		ageColumn(),
	}, templateColumns()...)
}

func daemonSetColumns() columns {
	status := appsv1.DaemonSetStatus{}.SwaggerDoc()
	return append(append(columns{
		nameColumn(),
		column("Desired", "integer", status["desiredNumberScheduled"]),
		column("Current", "integer", status["currentNumberScheduled"]),
		column("Ready", "integer", status["numberReady"]),
		column("Up-to-date", "integer", status["updatedNumberScheduled"]),
		column("Available", "integer", status["numberAvailable"]),
		column("Node Selector", "string", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"]),
		ageColumn(),
	}, templateColumns()...), wide("Selector", "string", appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"]))
}

func nodeColumns() columns {
	info, addresses := corev1.NodeSystemInfo{}.SwaggerDoc(), corev1.NodeStatus{}.SwaggerDoc()["addresses"]
	return columns{
		nameColumn(),
		column("Status", "string", "The status of the node"),
		column("Roles", "string", "The roles of the node"),
		ageColumn(),
		column("Version", "string", info["kubeletVersion"]),
		wide("Internal-IP", "string", addresses),
		wide("External-IP", "string", addresses),
		wide("OS-Image", "string", info["osImage"]),
		wide("Kernel-Version", "string", info["kernelVersion"]),
		wide("Container-Runtime", "string", info["containerRuntimeVersion"]),
	}
}

func serviceColumns() columns {
	spec := corev1.ServiceSpec{}.SwaggerDoc()
	return columns{
		nameColumn(),
		column("Type", "string", spec["type"]),
		column("Cluster-IP", "string", spec["clusterIP"]),
		column("External-IP", "string", spec["externalIPs"]),
		column("Port(s)", "string", spec["ports"]),
		ageColumn(),
		wide("Selector", "string", spec["selector"]),
	}
}

func namespaceColumns() columns {
	return columns{nameColumn(), column("Status", "string", "The status of the namespace"), ageColumn()}
}

func eventColumns() columns {
	event := corev1.Event{}.SwaggerDoc()
	name := nameColumn()
	name.Priority = 1
	return columns{
		column("Last Seen", "string", event["lastTimestamp"]),
		column("Type", "string", event["type"]),
		column("Reason", "string", event["reason"]),
		column("Object", "string", event["involvedObject"]),
		wide("Subobject", "string", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]),
		wide("Source", "string", event["source"]),
		column("Message", "string", event["message"]),
		wide("First Seen", "string", event["firstTimestamp"]),
		wide("Count", "string", event["count"]),
		name,
	}
}

func configMapColumns() columns {
	return columns{nameColumn(), column("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"]), ageColumn()}
}

func claimColumns() columns {
	spec, status := corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	return columns{
		nameColumn(),
		column("Status", "string", status["phase"]),
		column("Volume", "string", spec["volumeName"]),
		column("Capacity", "string", status["capacity"]),
		column("Access Modes", "string", status["accessModes"]),
		column("StorageClass", "string", "StorageClass of the pvc"),
		column("VolumeAttributesClass", "string", "VolumeAttributesClass of the pvc"),
		ageColumn(),
		wide("VolumeMode", "string", spec["volumeMode"]),
	}
}
