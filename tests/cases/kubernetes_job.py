"""kubernetes_job.py: what a Job of Kubernetes looks like, as far as our manifest goes: a JSON schema of our own, strict about unknown names.

Written from the API reference of batch/v1 (Job, JobSpec, PodFailurePolicy) and core/v1 (PodSpec, Container). SPDX-License-Identifier: Apache-2.0
"""


def strict(required="", **properties):
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def listed(items, least=1):
    return {"type": "array", "items": items, "minItems": least}


TEXT, COUNT = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
LABELS = {"type": "object", "additionalProperties": {"type": "string", "pattern": r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"}}
AMOUNTS = strict(cpu={"type": "string", "pattern": r"^[0-9]+m?$"}, memory={"type": "string", "pattern": r"^[0-9]+([KMGT]i?)?$"})
CONTAINER = strict("name image command", name=NAME, image=TEXT, command=listed(TEXT), args=listed(TEXT),
                   env=listed(strict("name value", name={"type": "string", "pattern": "^[A-Z_]+$"}, value={"type": "string"})),
                   resources=strict(requests=AMOUNTS, limits=AMOUNTS), volumeMounts=listed(strict("name mountPath", name=NAME, mountPath=TEXT)))
VOLUME = strict("name persistentVolumeClaim", name=NAME, persistentVolumeClaim=strict("claimName", claimName=NAME))
RULE = strict("action", action={"enum": ["FailJob", "Ignore", "Count", "FailIndex"]},
              onPodConditions=listed(strict("type status", type=TEXT, status={"enum": ["True", "False", "Unknown"]})),
              onExitCodes=strict("operator values", containerName=NAME, operator={"enum": ["In", "NotIn"]},
                                 values=listed({"type": "integer", "minimum": 1, "maximum": 255})))
POD = strict("restartPolicy containers", restartPolicy={"enum": ["Never", "OnFailure"]}, terminationGracePeriodSeconds=COUNT,
             containers=listed(CONTAINER), volumes=listed(VOLUME))
SPEC = strict("template", completionMode={"enum": ["Indexed", "NonIndexed"]}, completions=COUNT, parallelism=COUNT, backoffLimit=COUNT,
              podFailurePolicy=strict("rules", rules=listed(RULE)), template=strict("spec", metadata=strict(labels=LABELS), spec=POD))
JOB = strict("apiVersion kind metadata spec", apiVersion={"const": "batch/v1"}, kind={"const": "Job"},
             metadata=strict("name", name=NAME, labels=LABELS), spec=SPEC)


def rules(job):
    """What a schema does not say; the sentences that are broken."""
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    volumes, containers = {volume["name"] for volume in pod.get("volumes", [])}, {container["name"] for container in pod["containers"]}
    if "podFailurePolicy" in spec and pod["restartPolicy"] != "Never":
        yield "podFailurePolicy needs restartPolicy Never"
    if spec.get("completionMode") == "Indexed" and "completions" not in spec:
        yield "an Indexed Job needs completions"
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        codes = rule.get("onExitCodes")
        if ("onPodConditions" in rule) == bool(codes):
            yield "a rule has either onExitCodes or onPodConditions"
        if codes and (codes.get("containerName") not in containers or sorted(set(codes["values"])) != codes["values"]):
            yield "onExitCodes: names a container of the pod, values ascend"
    for container in pod["containers"]:
        yield from (f"volume {mount['name']} is not there" for mount in container.get("volumeMounts", []) if mount["name"] not in volumes)
