package rules

// ready is the ready-made rule of a kind.
type ready struct {
	state, reason, message, queue, at string
	owner                             []string // gjson paths
}

// readyMade are the rules of kinds that have an end. They read states as the controllers write them. Where an expression
// gives the empty text, the controller is between two states, or says nothing.
var readyMade = map[string]ready{
	"pytorchjobs.kubeflow.org":               kubeflow,
	"tfjobs.kubeflow.org":                    kubeflow,
	"mpijobs.kubeflow.org":                   kubeflow,
	"xgboostjobs.kubeflow.org":               kubeflow,
	"paddlejobs.kubeflow.org":                kubeflow,
	"jaxjobs.kubeflow.org":                   kubeflow,
	"trainjobs.trainer.kubeflow.org":         trainJob,
	"rayjobs.ray.io":                         rayJob,
	"workflows.argoproj.io":                  workflow,
	"jobs.batch.volcano.sh":                  volcanoJob,
	"jobsets.jobset.x-k8s.io":                jobSet,
	"sparkapplications.sparkoperator.k8s.io": sparkApplication,
	"taskruns.tekton.dev":                    tekton,
	"pipelineruns.tekton.dev":                tekton,
	"appwrappers.workload.codeflare.dev":     appWrapper,
}

// The conditions Running and Restarting remove each other.
var kubeflow = ready{
	state: `object.condition('Succeeded').status == 'True' ? 'Succeeded'
		: object.condition('Failed').status == 'True' ? 'Failed'
		: object.?spec.?runPolicy.?suspend.orValue(false) || object.condition('Suspended').status == 'True' ? 'Suspended'
		: object.condition('Restarting').status == 'True' ? 'Retrying'
		: object.condition('Running').status == 'True' ? 'Running'
		: object.condition('Created').status == 'True' ? 'Pending' : 'Submitted'`,
	reason:  `object.condition({'Retrying': 'Restarting', 'Pending': 'Created'}[?state].orValue(state)).reason`,
	message: `object.condition({'Retrying': 'Restarting', 'Pending': 'Created'}[?state].orValue(state)).message`,
	at: `state == 'Succeeded' ? object.?status.?completionTime.orValue(object.condition('Succeeded').lastTransitionTime)
		: state in ['Failed', 'Suspended'] ? object.condition(state).lastTransitionTime : ''`,
}

// Only the counts of its jobs say that it runs.
var trainJob = ready{
	state: `object.condition('Complete').status == 'True' ? 'Succeeded'
		: object.condition('Failed').status == 'True' ? 'Failed'
		: object.?spec.?suspend.orValue(false) ? 'Suspended'
		: object.?status.?jobsStatus.orValue([]).exists(j, j.?ready.orValue(0) > 0) ? 'Running'
		: object.?status.?jobsStatus.orValue([]).exists(j, j.?failed.orValue(0) > 0) ? 'Retrying'
		: object.?status.?jobsStatus.orValue([]).size() > 0 ? 'Pending' : 'Submitted'`,
	reason:  `object.condition({'Succeeded': 'Complete'}[?state].orValue(state)).reason`,
	message: `object.condition({'Succeeded': 'Complete'}[?state].orValue(state)).message`,
	at:      `state in ['Succeeded', 'Failed', 'Suspended'] ? object.condition(state == 'Succeeded' ? 'Complete' : state).lastTransitionTime : ''`,
}

// Complete by itself is no success. A retry empties the status except for the number of failures.
var rayJob = ready{
	state: `{'Initializing': 'Pending', 'Waiting': 'Pending', 'Failed': 'Failed', 'ValidationFailed': 'Failed', 'Suspending': 'Suspended',
			'Suspended': 'Suspended', 'Retrying': 'Retrying'}[?object.?status.?jobDeploymentStatus.orValue('')].orValue(
		object.?status.?jobDeploymentStatus.orValue('') == 'Complete' ?
			{'SUCCEEDED': 'Succeeded', 'FAILED': 'Failed', 'STOPPED': 'Failed'}[?object.?status.?jobStatus.orValue('')].orValue('')
		: object.?status.?jobDeploymentStatus.orValue('') == 'Running' ?
			(object.?status.?jobStatus.orValue('') in ['', 'PENDING'] ? 'Pending' : 'Running')
		: object.?status.?jobDeploymentStatus.orValue('') != '' ? ''
		: object.?spec.?suspend.orValue(false) ? 'Suspended'
		: object.?status.?failed.orValue(0) > 0 ? 'Retrying' : 'Submitted')`,
	reason:  `object.?status.?reason.orValue('')`,
	message: `object.?status.?message.orValue('')`,
	at:      `state in ['Succeeded', 'Failed'] ? object.?status.?endTime.orValue('') : ''`,
}

// A retry opens the same object again.
var workflow = ready{
	state: `object.?status.?phase.orValue('') == 'Succeeded' ? 'Succeeded'
		: object.?status.?phase.orValue('') in ['Failed', 'Error'] ? 'Failed'
		: object.?spec.?suspend.orValue(false) ? 'Suspended'
		: {'': 'Submitted', 'Pending': 'Pending', 'Running': 'Running'}[?object.?status.?phase.orValue('')].orValue('')`,
	reason:  `object.?status.?phase.orValue('') == 'Error' ? 'Error' : ''`,
	message: `object.?status.?message.orValue('')`,
	at:      `state in ['Succeeded', 'Failed'] ? object.?status.?finishedAt.orValue('') : ''`,
	owner: []string{
		`metadata.labels.workflows\.argoproj\.io/creator-preferred-username`,
		`metadata.labels.workflows\.argoproj\.io/creator`,
	},
}

// The phase is Running even while pods wait. A job that is Aborted can go on.
var volcanoJob = ready{
	state: `object.?status.?state.?phase.orValue('') == 'Running' ? (object.?status.?running.orValue(0) > 0 ? 'Running' : 'Pending')
		: {'': 'Submitted', 'Pending': 'Pending', 'Aborting': 'Suspended', 'Aborted': 'Suspended', 'Restarting': 'Retrying',
			'Completed': 'Succeeded', 'Terminated': 'Failed', 'Failed': 'Failed'}[?object.?status.?state.?phase.orValue('')].orValue('')`,
	reason:  `object.?status.?state.?reason.orValue('')`,
	message: `object.?status.?state.?message.orValue('')`,
	queue:   `object.?spec.?queue.orValue('')`,
	at:      `state in ['Succeeded', 'Failed', 'Suspended'] ? object.?status.?state.?lastTransitionTime.orValue('') : ''`,
}

// While it restarts, its jobs are made anew, and none of them is ready.
var jobSet = ready{
	state: `object.?status.?terminalState.orValue('') == 'Completed' || object.condition('Completed').status == 'True' ? 'Succeeded'
		: object.?status.?terminalState.orValue('') == 'Failed' || object.condition('Failed').status == 'True' ? 'Failed'
		: object.?spec.?suspend.orValue(false) ? 'Suspended'
		: object.?status.?replicatedJobsStatus.orValue([]).exists(j, j.?ready.orValue(0) > 0) ? 'Running'
		: object.condition('RestartingJobSet').status == 'True' || object.?status.?restarts.orValue(0) > 0
			|| object.?status.?replicatedJobsStatus.orValue([]).exists(j, j.?failed.orValue(0) > 0) ? 'Retrying'
		: object.?status.?replicatedJobsStatus.orValue([]).size() > 0 ? 'Pending' : 'Submitted'`,
	reason:  `object.condition({'Succeeded': 'Completed', 'Retrying': 'RestartingJobSet'}[?state].orValue(state)).reason`,
	message: `object.condition({'Succeeded': 'Completed', 'Retrying': 'RestartingJobSet'}[?state].orValue(state)).message`,
	at:      `state in ['Succeeded', 'Failed', 'Suspended'] ? object.condition(state == 'Succeeded' ? 'Completed' : state).lastTransitionTime : ''`,
}

// A submission that failed is tried again; UNKNOWN says nothing.
var sparkApplication = ready{
	state: `{'': object.?spec.?suspend.orValue(false) ? 'Suspended' : 'Submitted', 'SUBMITTED': 'Pending', 'RUNNING': 'Running',
			'COMPLETED': 'Succeeded', 'FAILED': 'Failed', 'SUBMISSION_FAILED': 'Retrying', 'PENDING_RERUN': 'Retrying',
			'INVALIDATING': 'Retrying', 'SUSPENDING': 'Suspended', 'SUSPENDED': 'Suspended',
			'RESUMING': 'Pending'}[?object.?status.?applicationState.?state.orValue('')].orValue('')`,
	reason:  `object.?status.?applicationState.?state.orValue('')`,
	message: `object.?status.?applicationState.?errorMessage.orValue('')`,
	at:      `state in ['Succeeded', 'Failed'] ? object.?status.?terminationTime.orValue('') : ''`,
}

// One condition says everything. While it is Unknown, its reason does.
var tekton = ready{
	state: `{'True': 'Succeeded', 'False': 'Failed',
			'Unknown': {'Started': 'Pending', 'Pending': 'Pending', 'PipelineRunPending': 'Suspended', 'ToBeRetried': 'Retrying',
				'ResolvingTaskRef': 'Pending', 'ResolvingPipelineRef': 'Pending', 'ExceededNodeResources': 'Pending',
				'PullImageFailed': 'Pending'}[?object.condition('Succeeded').reason].orValue('Running'),
			'': object.?spec.?status.orValue('') == 'PipelineRunPending' ? 'Suspended' : 'Submitted'}[?object.condition('Succeeded').status].orValue('')`,
	reason:  `object.condition('Succeeded').reason`,
	message: `object.condition('Succeeded').message`,
	at:      `state in ['Succeeded', 'Failed'] ? object.?status.?completionTime.orValue('') : ''`,
}

// The phase is Running before its pods run.
var appWrapper = ready{
	state: `object.?status.?phase.orValue('') == 'Running' ? (object.condition('PodsReady').status == 'True' ? 'Running' : 'Pending')
		: {'': object.?spec.?suspend.orValue(false) ? 'Suspended' : 'Submitted', 'Suspending': 'Suspended', 'Suspended': 'Suspended', 'Resuming': 'Pending', 'Resetting': 'Retrying', 'Succeeded': 'Succeeded',
			'Failed': 'Failed'}[?object.?status.?phase.orValue('')].orValue('')`,
	reason:  `state == 'Failed' ? object.condition('Unhealthy').reason : ''`,
	message: `state == 'Failed' ? object.condition('Unhealthy').message : ''`,
}
