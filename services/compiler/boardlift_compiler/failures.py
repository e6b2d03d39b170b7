"""The table of failure kinds of the vendor toolchain: code, recognition, cause, remedy, and the pass that cures it.

One row per kind. ``pattern`` is searched in the tool's error text (error records, or the last lines when there are
none); its group ``subject`` names the node, file or parameter at fault. Rows are tried in order: special before
general. Failures that leave no text (signals, time-outs, a full disk) are told apart in ``explain_failure``.
"""

from __future__ import annotations

from boardlift_compiler.failure_kind import row

S = r"(?P<subject>[^\n]+?)"

DECISIVE_KINDS = (
    row("GRU_UNROLL", r"Error Pass\(split_gru\)",
        "The toolchain fails to unroll a GRU whose Y_h output is not used.",
        "Wire both outputs Y and Y_h of the GRU, or unroll it.", cure="wire-gru-state"),
    row("DISK_FULL", r"No space left on device|Disk quota exceeded", "The disk is full.",
        "Free space in the work folder, then run again.", user_fault=False),
    row("FILE_TOO_LARGE", r"File too large|\[Errno 27\]", "The tool wrote a file larger than a run may.",
        "Raise the service's limit, or use fewer samples.", user_fault=False),
    row("OUT_OF_MEMORY", r"MemoryError|std::bad_alloc|Cannot allocate memory|Unable to allocate"
        r"|Failed to allocate memory"
        r"|failed to map segment from shared object|yaml file parse failed[^\n]*\s*\Z",
        "Memory ran out.", "Use fewer compiler jobs or samples, or a machine with more memory.", user_fault=False),
    row("KILLED", r"hbdk-cc compile hbir model failed with returncode -(?P<subject>9|15|2|1)\b",
        "Something else ended the tool or its compiler (signal {subject}); the kernel reports no want of memory.",
        "Run again; if it repeats, look who ends processes on that machine.", user_fault=False),
)  # fmt: skip

MODEL_KINDS = (
    row("OPSET_TOO_HIGH", r"The opset version of the (?:onnx )?model is (?P<subject>\d+), (?:the maximum|only model)",
        "The model uses opset {subject}; the toolchain reads at most 11.",
        "Run the transform stage, or export again with opset_version=11.", cure="downgrade-opset"),
    row("IR_VERSION_TOO_HIGH", r"The ir version of the model is (?P<subject>\d+), which is greater",
        "The file has IR version {subject}; the toolchain reads at most 9.",
        "Run the transform stage, or set model.ir_version = 7 and save again.", cure="downgrade-opset"),
    row("DYNAMIC_SHAPE", rf"The input_shape {S} of the model is a dynamic shape"
        rf"|For input (?P<subject2>\S+), the input shape .* is invalid as there exist missing or dynamic"
        rf"|The shape of model input:(?P<subject3>\S+) is .* which has dimensions of 0",
        "The input has a dimension that is not a fixed number above zero: {subject}.",
        "Fix the shape: run the transform stage, or give the shape in the input spec.",
         cure="fix-dynamic-dims"),
    row("CUSTOM_DOMAIN", r"nodes:\[(?P<subject>[^\]]*)\] are specified as domain|unsupported domain detected",
        "Nodes {subject} belong to an operator domain that is not ONNX's own.",
        "Export without custom operators, or replace them by official ones before the compile."),
    row("INT64_AXIS", rf"(?:The node name is (?P<node>\S+) and [^\n]+\s)?error info: {S} currently only support"
        r" (?:INT32|FLOAT),? but gives INT64",
        "{subject} gets an int64 index; the board's kernel takes int32.",
        "Cast the index or axis tensor to int32.", cure="normalize-details"),
    row("RESIZE_EXTRAPOLATION", r"The node name is (?P<subject>\S+) and the node type is Resize[^\n]+\s[^\n]*"
        r"not support this attribute=extrapolation_value",
        "Resize {subject} falls to the CPU, whose kernel refuses the attribute extrapolation_value.",
        "Leave the attribute out; only tf_crop_and_resize reads it.", cure="suit-cpu-kernels"),
    row("CPU_OPERATOR_CONSTRAINT", r"The node name is (?P<subject>\S+) and the node type is [^\n]+Constraints exist",
        "Node {subject} falls to the CPU and its kernel there does not take this form.",
        "Rewrite the node; the evidence names the constraint."),
    row("QDQ_UNSUPPORTED", r"HorizonRT not support these cpu operators: [^\n]*HzCalibration",
        "The model holds QuantizeLinear/DequantizeLinear pairs; the toolchain quantises float models only.",
        "Export the float model and let the toolchain calibrate it."),
    row("CPU_OPERATOR_UNSUPPORTED", rf"HorizonRT not support these cpu operators: {S}(?:\n|$)",
        "The board has no kernel for {subject}, neither on the BPU nor on the CPU.",
        "Replace the operator by ones the board has, or cut the graph before it."),
    row("CONV_RANK_UNSUPPORTED", r"Error Node Info\(name:(?P<subject>[^;]*); kind:HzPreQuantConv\)[^E]*Error Pass"
        r"\(quantize_conv\)[^E]*Error message:[^\n]*undefined attribute 'dilations'",
        "Conv {subject} is not two-dimensional; the BPU has 2-D convolutions only.",
        "Rewrite it as 2-D convolutions."),
    row("CLIP_BOUND_RANK", r"min should be a scalar|max should be a scalar",
        "A Clip has its bounds as one-element tensors of rank 1; calibration wants scalars.",
        "Make min and max rank 0.", cure="normalize-details"),
    row("INT16_SPLIT_CLASH", r"variable[^\n]*?(?P<subject>\S+_scale_int(?:8|16)) already exists in graph inputs",
        "With all nodes in int16 the toolchain trips over {subject}: a Split feeds only nodes without int16 support.",
        "Compile this model in int8 or list the int16 nodes one by one."),
    row("NAN_WEIGHT", r"find NaN threshold in (?P<subject>\S+?)(?:_HzCalibration)?,",
        "Weight {subject} holds NaN.", "Export a fully trained checkpoint; NaN in weights is a training fault."),
    row("WEIGHT_TYPE_UNSUPPORTED", r"(?:u?n?s?u?p)?ported input data type",
        "A weight is not float32 (float16 or float64).", "Export in float32.", cure="cast-to-float32"),
    row("NOTHING_FOR_BPU", r"There is no node can execute on BPU|No q?g?uantifiable nodes were found",
        "No node can run on the BPU: the graph has no 2-D Conv, Gemm or MatMul with constant weights.",
        "Check the outputs the model was cut to, and that convolutions are 2-D (lift Conv1d to 4-D).",
         cure="lift-to-4d"),
    row("OUTPUT_NODE_UNKNOWN", r"error message: '(?P<subject>[^'\n]+)'\s*$",
        "output_nodes names {subject}, which the model does not have.", "Use a node name of the model."),
    row("TOO_MANY_OUTPUTS", r"max output num is (?P<subject>\d+)",
        "The model has more than {subject} outputs.", "Cut it to the outputs that are used.",
         cure="cut-outputs"),
    row("CONTROL_FLOW_UNSUPPORTED", r"eraseOutput: Assertion", "The model holds control flow (If, Loop).",
        "Transform it first: loops of a bounded number of steps are unrolled (unroll-loop), both branches of an If are"
        " computed (if-to-where), constant conditions fold; what cannot go is refused there by name.",
         cure="unroll-loop"),
    row("INVALID_MODEL", r"The onnx model is invalid|shape_inference failed|ERROR during shape inference"
        r"|Inferred shape and existing shape differ",
        "ONNX's own checks refuse the model: an unknown operator, a wrong attribute or contradicting shapes.",
        "Run onnx.checker.check_model(full_check=True) on it and export again."),
    row("MODEL_UNREADABLE", r"Protobuf decoding consumed too few bytes|Error parsing message with type 'onnx"
        r"|can't find input in model",
        "The file is not a complete ONNX model.", "Upload the file again; compare its size with the original's."),
    row("MODEL_MISSING", rf"Can not find onnx_model file given: {S}, please", "The model file is missing: {subject}.",
        "Try again; if it stays, look at the artifact store.", user_fault=False),
)  # fmt: skip

INPUT_KINDS = (
    row("CALIBRATION_SAMPLE_SIZE",
        r"load cal data for input '?(?P<subject>[^'\n]+?)'? error|cannot reshape array of size",
        "A calibration sample of input {subject} has another size than the input (wrong shape, dtype or .npy file).",
        "Write samples as raw float32 of the input's shape; boardlift does this from an .npz."),
    row("CALIBRATION_DIR_MISSING", rf"Cal_data_dir does not exist: {S}(?:\n|$)",
        "The calibration folder does not exist: {subject}.", "Name an existing folder in cal_data_dir."),
    row("CALIBRATION_EMPTY", rf"Directory {S} is empty, please check calibration",
        "The calibration folder is empty: {subject}.", "Put 20 to 100 samples into it."),
    row("CALIBRATION_DIR_COUNT", r"Wrong cal_dir num given",
        "There is not one calibration folder per input.", "Name one folder per input, separated by ';'."),
    row("INPUT_NAME_UNKNOWN", r"Input name does not exist in model file: (?P<subject>\S+?)\.? name list",
        "The model has no input named {subject}.", "Use the input names of the model."),
    row("INPUT_SHAPE_SYNTAX", r"Input shape parse failed\. Input: (?P<subject>\S+)",
        "input_shape {subject} is not written like 1x3x32x32.", "Separate the dimensions by x."),
    row("SPACE_AND_RANGE_PAIR", r"input_space_and_range combination invalid[^\n]* input_type_rt (?P<subject>\w+)"
        r"|not supported transform to input_type_rt '(?P<subject2>\w+_bt601_video)'",
        "An input fed as {subject} has no bt601_video range.",
        "Leave input_space_and_range out; bt601_video is for nv12 of an input that was trained as rgb or bgr."),
    row("INPUT_TYPE_PAIR", r"input_type_train '(?P<subject>\w+)' is not supported transform to input_type_rt",
        "An input trained as {subject} cannot be fed as asked on the board.",
        "Allowed: rgb/bgr -> nv12, yuv444, rgb, bgr; yuv444 -> nv12, yuv444; gray -> gray; featuremap -> featuremap."),
    row("IMAGE_SIZE_ODD", r"(?:Invalid (?P<subject>nv12|yuv444) input shape|does not support odd size)",
        "A {subject} input needs even height and width.", "Change the input size to even numbers."),
    row("INPUT_SOURCE_PAIR", r"input type rt : (?P<subject>\w+) does not support input_source"
        r"|Wrong input_source received",
        "An input fed as {subject} cannot come from the input_source that is asked.",
        "nv12 comes from pyramid or resizer, gray from any, the others from ddr; without the key the tool chooses."),
    row("NORM_TYPE_INVALID", r"is featuremap, this input only support norm_type no_preprocess|norm_type[^\n]*invalid"
        r"|Norm type given invalid: '(?P<subject>[^']*)'|The size of (?P<subject2>mean|scale) does not match input",
        "Mean and scale do not fit the input: a featuremap takes none, an image one number or one per channel.",
        "Normalise before the model, or use an image input type with norm_type, mean and scale that agree."),
)  # fmt: skip

CONFIG_KINDS = (
    row("MARCH_INVALID", r"User input march invalid: '(?P<subject>[^']*)'|'--march': '(?P<subject2>[^']*)' is not one",
        "march {subject} is not one this toolchain builds for.", "Use bayes-e for RDK X5."),
    row("CORE_NUM_UNSUPPORTED", r"not support execute one model on \d+ ?core",
        "The chip has one BPU core and two were asked.", "Set core_num to 1."),
    row("OPTIMIZE_LEVEL_INVALID", r"optimize_level invalid, '(?P<subject>[^']*)'",
        "Optimise level {subject} does not exist.", "Use O0, O1, O2 or O3."),
    row("COMPILE_MODE_INVALID", r"Invalid compile model received\. (?P<subject>\S+) is invalid",
        "Compile mode {subject} does not exist.", "Use latency, bandwidth or balance."),
    row("CALIBRATION_METHOD_INVALID", r"calibration_type invalid, '(?P<subject>[^']*)'",
        "Calibration method {subject} does not exist.", "Use default, mix, kl, max, load or skip."),
    row("OPTIMIZATION_INVALID", r"The optimization parameter: (?P<subject>\S+) is not supported",
        "The optimization word {subject} does not exist for this chip.",
        "Use words like set_all_nodes_int16, set_Softmax_input_int8, asymmetric, bias_correction."),
    row("CONFIG_UNKNOWN_KEY", r"Wrong key '(?P<subject>[^']+)' in",
        "The YAML has an unknown section or key {subject}.",
        "Remove it; `boardlift compile --yaml FILE --lint` names all that are wrong."),
    row("CONFIG_SYNTAX", r"while (?:parsing|scanning) (?:a|an|the) (?P<subject>[^\n]+)",
        "The YAML is not well formed ({subject}).",
        "Correct its syntax; `boardlift compile --yaml FILE --lint` points at the line."),
    row("CONFIG_SECTION_INVALID", r"Key '(?P<subject>[^']+)' error|Missing keys: (?P<subject2>[^\n]+)",
        "The YAML's section {subject} lacks a key or holds a wrong value.",
        "Compare it with what `boardlift compile --yaml FILE --lint` says."),
    row("CONFIG_MISSING_KEY", r"Wrong num of (?P<subject>\w+) received",
        "{subject} is missing or is not given once per input.", "Give one value per input, separated by ';'."),
    row("CONFIG_MISSING", r"'-c' / '--config': Path '(?P<subject>[^']*)' does not exist|not NoneType",
        "No YAML file was given, or it does not exist: {subject}.", "Pass an existing YAML file."),
    row("NODE_INPUT_UNKNOWN", r"Unsupported config key in node_config: (?P<subject>\S+)",
        "node_info names {subject}, which the node does not have.",
        "Number the inputs from 0, or write InputType for all of them."),
    row("NODE_INFO_SYNTAX", r"expected string or bytes-like object|currently we only support Conv_0:int16",
        "node_info is not in a form the tool reads: an unquoted ON is YAML's true, and names with special characters"
        " need the mapping form.", "Write node_info as a mapping with 'ON' in quotes."),
    row("MODEL_TYPE_MISSING", r"wrong model type (?P<subject>\S+)", "The command line lacks --model-type.",
        "Pass --model-type onnx.", user_fault=False),
    row("COMMAND_USAGE", r"No such option:? '?(?P<subject>[^'\n]+)|Usage: hb_",
        "The command line has an option the tool does not know: {subject}.",
        "The installed tool version differs from the one this service was made for.", user_fault=False),
)  # fmt: skip

MACHINE_KINDS = (
    row("TOOLCHAIN_PART_MISSING", r"(?P<subject>[\w.]+) is a placeholder: the real package is not installed",
        "This option needs a package that the lean toolchain leaves out: {subject}.",
        "Install the real package into the toolchain's environment, or leave the option out.", user_fault=False),
    row("TOOLCHAIN_PATH", r"can not find hbdk library", "The tool's own folder is not on PATH.",
        "Install the toolchain with `make toolchain` and point BOARDLIFT_TOOLCHAIN at it.", user_fault=False),
    row("COMPILER_CRASH", r"hbdk-cc compile hbir model failed with returncode -(?P<subject>\d+)",
        "The vendor's compiler died by signal {subject}.",
        "The evidence has its last words. Leave out the transform pass that made the form it names, or put a node there"
        " on the CPU (run_on_cpu); another level does not help."),
    row("WORK_FOLDER_UNWRITABLE", r"\[Errno (?:2|13|20|30)\] (?:No such file or directory|Permission denied"
        r"|Not a directory|Read-only file system): '?(?P<subject>[^'\n]*)'?",
        "The work folder cannot be written: {subject}.", "Give the service a writable work folder.",
         user_fault=False),
    row("GPU_IMAGE", r"cudaErrorNoKernelImageForDevice", "The GPU image runs without a matching GPU.",
        "Use the CPU image.", user_fault=False),
    row("COMPILED_MODEL_UNREADABLE", r"is not a bin model|Graphs of the model is empty",
        "The compiled file is damaged or not a compiled model.", "Compile again.", user_fault=False),
    row("COMPILER_LOOP", r"passes may have infinite loop",
        "The vendor's compiler gave up on a subgraph: its optimiser came to no end.",
        "Split the subgraph (run_on_cpu for a node of it), or leave out the transform pass that made its form."),
    row("COMPILER_FAILED", r"hbdk-cc compile hbir model failed with returncode (?P<subject>\d+)",
        "The vendor's compiler refused the model (exit code {subject}).", "The evidence has its reason."),
    row("TABLE_NOT_MADE", r"Error Node Info\(name:(?P<subject>[^;]*); kind:\w+\)[^E]*Error Pass\(quantize_lut\)",
        "The tool cannot make the table of {subject}: its range is infinite, empty or of extreme size.",
        "Keep its input finite, as by a Clip in front of an Exp; or put the node on the CPU."),
    row("VENDOR_PASS_FAILED", r"Error Node Info\(name:(?P<subject>[^;]*);"
        r"|There is a Pass Error(?!.*Error Node Info)",
        "A pass of the vendor's optimiser fails on node {subject}.",
        "Rewrite that node, or report it with the model to the vendor."),
    row("CONFIG_REFUSED", r"Parse '(?P<subject>\w+)' failed!",
        "The tool refuses a value in the YAML's section {subject}.", "The last line of the evidence names it."),
    row("TOOL_REFUSED", r"ERROR-OCCUR-DURING \{(?P<subject>[^}]+)\}|ERROR|Error|exception in command",
        "The tool refused for a reason that has no code here yet ({subject}).", "Read the evidence and the log."),
)  # fmt: skip

SILENT_KINDS = (
    row("CRASH", None, "The tool crashed by signal {subject}.",
        "If it repeats, the model triggers a fault of the tool: the evidence shows its last step."),
    row("CONV_BIAS_CRASH", None, "The tool dies on Conv {subject}: it folds the constant Add in front into a bias"
        " that is not there.", "Give the Conv a bias; zeros will do.", cure="fold-channel-add"),
    row("PRELU_SLOPES", None, "PRelu {subject} has its slopes along another axis than the channels (axis 1), which the"
        " tool does not take.", "Transpose the slopes' axis to the channels around it.", cure="turn-prelu"),
    row("PAD_CROPS", None, "The vendor's runtime dies on Pad {subject}, which pads by less than nothing.",
        "Write it as a Slice and a Pad of what is left.", cure="crop-pad"),
    row("CPU_UNSUPPORTED", None, "The processor lacks vector instructions the toolchain was built with.",
        "Use an x86-64 machine with AVX2; pass the host CPU through to a virtual machine.", user_fault=False),
    row("TIMEOUT", None, "The tool did not finish within {subject} s.",
        "Use optimise level O2, fewer samples, or allow more time (BOARDLIFT_COMPILE_TIMEOUT).", user_fault=False),
    row("HANG", None, "The tool printed nothing for {subject} s, which no step of it does.",
        "If it repeats with this model, the evidence shows the step at which it hangs.", user_fault=False),
    row("NO_COMPILED_MODEL", None, "The tool said it succeeded but left no compiled model.",
        "Run again; keep the log if it repeats.", user_fault=False),
    row("NOT_CLOSED", None, "The tool ended with exit code 0 but without its closing line.",
        "Run again; keep the log if it repeats.", user_fault=False),
    row("MARCH_MISMATCH", None, "The compiled model is for {subject}, not for this target.",
        "Compile with march bayes-e.", user_fault=False),
    row("LOG_NOT_UNDERSTOOD", None, "The log of this tool version cannot be read: {subject}.",
        "Install the toolchain version this release was made for.", user_fault=False),
    row("EXIT_CODE", None, "The tool ended with exit code {subject} and no message.", "Read the log.",
         user_fault=False),
    row("CALIBRATION_NOT_FINITE", None, "Calibration samples of {subject} hold NaN or Inf; the tool accepts them and"
        " builds a useless model.", "Remove the broken samples."),
    row("CALIBRATION_ALL_ZERO", None, "All calibration samples of {subject} are zero; the tool accepts them and builds"
        " a useless model.", "Record real samples."),
    row("CALIBRATION_CONSTANT", None, "All calibration values of {subject} are the same number.",
        "Record real samples."),
    row("CALIBRATION_MISSING", None, "There are no calibration samples for input {subject}.",
        "Give samples for every input, the same number each."),
    row("CALIBRATION_UNREADABLE", None, "The samples are not an .npz of plain arrays.",
        "Write them with numpy.savez(name=array, ...), one array [N, ...] per input."),
    row("CALIBRATION_RANGE", None, "Pixels of image input {subject} lie outside 0 to 255.",
        "Give raw pixels; mean and scale belong into the input spec."),
    row("CALIBRATION_TYPE", None, "Calibration samples of {subject} have another element type than the input takes.",
        "Store float32 (or uint8 for images)."),
    row("NODE_UNKNOWN", None, "The override names {subject}, which the model does not have; the tool would ignore it.",
        "Use a node name of the model."),
    row("NAME_UNUSABLE", None, "The name {subject} holds characters that the tool's configuration cannot carry.",
        "Rename it with letters, digits, '_', '.', '/', ':' or '-'."),
    row("EXTERNAL_DATA", None, "Weight {subject} lies in another file.", "Save the model as one file."),
    row("SIMULATION_FAILED", None, "The vendor's runtime or simulator refused: {subject}.",
        "The evidence has its words; compile again if the artifacts do not belong together.", user_fault=False),
    row("COMPILED_CODE_ABORTS", None,
        "The compiled code of {subject} dies in the vendor's simulator, before it gives anything.",
        "Put this node on the CPU (run_on_cpu).", user_fault=False),
    row("ESTIMATE_MISSING", None, "The build has no estimated latency for {subject}.", "Compile again.",
         user_fault=False),
    row("REFERENCE_MISMATCH", None, "The float reference does not fit the model's outputs: {subject}.",
        "Make the reference outputs with the model and the samples of this job."),
    row("NORM_VALUE", None, "Mean or scale of input {subject} holds NaN, Inf or a factor of zero; the tool accepts it"
        " and builds a useless model.", "Give finite numbers, the factors other than zero."),
    row("NODE_PLACED_TWICE", None, "{subject} is asked for on the CPU and on the BPU.", "Keep one of both."),
    row("INPUT_SHAPE_MISMATCH", None, "The asked input shape is not the model's: {subject}.",
        "Leave the shape out, or give the model's."),
    row("IMAGE_SHAPE", None, "An image input must have four dimensions and 3 channels (gray: 1): {subject}.",
        "Declare it as featuremap, or correct layout_train."),
    row("KNOB_RANGE", None, "{subject} is out of its range.", "See DescribeToolchain for units and ranges."),
    row("KNOB_IGNORED", None, "The calibration method ignores {subject}.", "Ask for method max, or leave it out."),
    row("TARGET_UNKNOWN", None, "Target {subject} is not served here.", "Use rdk-x5."),
)  # fmt: skip

TEXT_KINDS = (*DECISIVE_KINDS, *MODEL_KINDS, *INPUT_KINDS, *CONFIG_KINDS, *MACHINE_KINDS)
FAILURE_KINDS = {kind.code: kind for kind in (*TEXT_KINDS, *SILENT_KINDS)}
