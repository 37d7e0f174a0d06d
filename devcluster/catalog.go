package main

// The submitter chooses from this catalog: the teams of a company that trains models, their members, and the programs
// that they run.

type team struct {
	namespace string // also the name of its members' group
	queue     string
	owners    []string
	workloads []workload
}

// workload is a program that a team runs again and again with other parameters.
type workload struct {
	name      string
	purpose   string
	framework string
	image     string
	// The requests of one pod. A node has eight GPUs, 96 CPUs and 768 GiB.
	gpus, cpus, gibibytes int
	// maxWorkers is how many pods a job uses at most, at the same time or one after the other.
	maxWorkers int
	// sweep means that the pods are independent trials, of which some run at a time. Otherwise they are workers that
	// train together.
	sweep bool
}

var teams = []team{
	{
		namespace: "team-vision",
		queue:     "vision-gpu",
		owners:    []string{"mara.lindqvist", "tomasz.kowalski", "ines.carvalho", "yuki.tanaka"},
		workloads: []workload{
			{name: "resnet50-imagenet", purpose: "ResNet-50 on ImageNet", framework: "pytorch", image: "vision/trainer:2.8.1", gpus: 1, cpus: 8, gibibytes: 48, maxWorkers: 4},
			{name: "yolo-drone-footage", purpose: "object detector for drone footage", framework: "pytorch", image: "vision/detector:1.14.0", gpus: 2, cpus: 12, gibibytes: 64, maxWorkers: 1},
			{name: "sam-finetune", purpose: "segmentation model, fine-tuned on street scenes", framework: "pytorch", image: "vision/trainer:2.8.1", gpus: 1, cpus: 8, gibibytes: 64, maxWorkers: 4},
			{name: "tile-satellite", purpose: "cutting satellite images into tiles", framework: "ray", image: "vision/preprocess:0.9.3", cpus: 4, gibibytes: 8, maxWorkers: 8, sweep: true},
		},
	},
	{
		namespace: "team-nlp",
		queue:     "nlp-gpu",
		owners:    []string{"chidi.okafor", "lena.brandt", "sofia.marino", "arjun.mehta"},
		workloads: []workload{
			{name: "llama-lora", purpose: "LoRA adapter for customer letters", framework: "pytorch", image: "nlp/finetune:5.2.0", gpus: 4, cpus: 32, gibibytes: 256, maxWorkers: 1},
			{name: "bert-intent", purpose: "intent classifier", framework: "pytorch", image: "nlp/classify:3.0.4", gpus: 1, cpus: 4, gibibytes: 16, maxWorkers: 1},
			{name: "tokenize-corpus", purpose: "tokenising the March corpus", framework: "spark", image: "nlp/tokenize:1.6.2", cpus: 6, gibibytes: 12, maxWorkers: 8, sweep: true},
			{name: "eval-harness", purpose: "nightly evaluation", framework: "pytorch", image: "nlp/eval:0.4.11", gpus: 1, cpus: 6, gibibytes: 32, maxWorkers: 2, sweep: true},
		},
	},
	{
		namespace: "team-speech",
		queue:     "speech-gpu",
		owners:    []string{"freja.holm", "mateo.alvarez", "priya.nair"},
		workloads: []workload{
			{name: "whisper-dialects", purpose: "speech recognition for dialects", framework: "pytorch", image: "speech/asr:4.1.0", gpus: 2, cpus: 16, gibibytes: 96, maxWorkers: 2},
			{name: "tts-voices", purpose: "voices for the reader", framework: "jax", image: "speech/tts:2.2.2", gpus: 1, cpus: 8, gibibytes: 32, maxWorkers: 1},
			{name: "resample-audio", purpose: "resampling call recordings", framework: "ray", image: "speech/preprocess:1.0.8", cpus: 2, gibibytes: 4, maxWorkers: 6, sweep: true},
		},
	},
	{
		namespace: "team-recsys",
		queue:     "recsys-shared",
		owners:    []string{"hannah.weiss", "oluwaseun.adeyemi", "minh.tran", "clara.dubois"},
		workloads: []workload{
			{name: "two-tower-retrieval", purpose: "retrieval model", framework: "tensorflow", image: "recsys/train:7.3.0", gpus: 1, cpus: 12, gibibytes: 64, maxWorkers: 2},
			{name: "ranker-sweep", purpose: "learning rates for the ranker", framework: "xgboost", image: "recsys/ranker:7.3.0", cpus: 8, gibibytes: 24, maxWorkers: 8, sweep: true},
			{name: "feature-backfill", purpose: "features of last quarter", framework: "spark", image: "recsys/features:2.0.5", cpus: 4, gibibytes: 16, maxWorkers: 4, sweep: true},
		},
	},
	{
		namespace: "team-robotics",
		queue:     "robotics-gpu",
		owners:    []string{"noor.haddad", "elias.virtanen", "grace.kimani"},
		workloads: []workload{
			{name: "grasp-policy", purpose: "grasping policy, reinforcement learning", framework: "jax", image: "robotics/rl:1.9.7", gpus: 1, cpus: 16, gibibytes: 48, maxWorkers: 4},
			{name: "sim-rollouts", purpose: "rollouts in the simulator", framework: "ray", image: "robotics/sim:3.3.1", cpus: 8, gibibytes: 16, maxWorkers: 8, sweep: true},
		},
	},
}

// teamNamespaces are the namespaces of all teams.
func teamNamespaces() []string {
	var names []string
	for _, t := range teams {
		names = append(names, t.namespace)
	}
	return names
}
