# The first line of a run's job: sh start.sh FOLDER ATTEMPTS SCRIPT [FIRST]
#
# Notes the start in the run's journal, and queues the job's successor, which starts if this job fails. This happens
# before Python starts, since a job may be ended at any moment.
#
# FOLDER    of the submission; its file `runs` has a line for each task of the array
# ATTEMPTS  maximum number of starts of a run
# SCRIPT    of this job
# FIRST     the first job of the run, whose task every successor executes
folder=$1 attempts=$2 script=$3
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
first=${4:-$job}

journal=$folder/$(sed -n "$((${SLURM_ARRAY_TASK_ID:-0} + 1))p" "$folder/runs").jobs
echo "started $job" >>"$journal"

successor() { # without this job's Slurm variables, which sbatch would take for options
  env $(env | sed -nE '/^SLURM_CONF=/d; s/^(SLURM_[A-Za-z0-9_]+)=.*/-u \1/p') \
    sbatch --parsable --dependency="afternotok:$job" ${SLURM_ARRAY_TASK_ID:+--array="$SLURM_ARRAY_TASK_ID"} "$script" "$first"
}
wanted() { # not if no start is left; a job that was queued again in its place already has its successor
  [ ! -e "$folder/cancelled" ] && [ "$(grep -c '^started ' "$journal")" -lt "$attempts" ] &&
    ! grep -q " after $job\$" "$journal"
}
if wanted; then
  if next=$(successor); then
    echo "queued ${next%%;*}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID} after $job" >>"$journal"
  else
    echo "no successor is queued: sbatch refuses it on this node"
  fi
fi

pickle=${job}_submitted.pkl
[ -e "$folder/$pickle" ] || [ "$first" = "$job" ] || ln -sf "${first}_submitted.pkl" "$folder/$pickle"
