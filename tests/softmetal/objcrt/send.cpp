// Message sends on x86-64: the argument registers survive the lookup, then a tail call.
#ifndef __x86_64__
#error "the software Metal runs on x86-64 only"
#endif

// C++ exceptions pass through .mm frames with the C++ personality; the .mm files use no @try.
asm(R"(
.globl __objc_personality_v0
__objc_personality_v0:
  jmp __gxx_personality_v0@PLT
)");

#define SAVE                   \
  "push %rbp\n"                \
  "mov %rsp, %rbp\n"           \
  "sub $0xd0, %rsp\n"          \
  "mov %rdi, -8(%rbp)\n"       \
  "mov %rsi, -16(%rbp)\n"      \
  "mov %rdx, -24(%rbp)\n"      \
  "mov %rcx, -32(%rbp)\n"      \
  "mov %r8, -40(%rbp)\n"       \
  "mov %r9, -48(%rbp)\n"       \
  "mov %rax, -56(%rbp)\n"      \
  "movups %xmm0, -80(%rbp)\n"  \
  "movups %xmm1, -96(%rbp)\n"  \
  "movups %xmm2, -112(%rbp)\n" \
  "movups %xmm3, -128(%rbp)\n" \
  "movups %xmm4, -144(%rbp)\n" \
  "movups %xmm5, -160(%rbp)\n" \
  "movups %xmm6, -176(%rbp)\n" \
  "movups %xmm7, -192(%rbp)\n"

#define RESTORE                \
  "mov %rax, %r11\n"           \
  "mov -8(%rbp), %rdi\n"       \
  "mov -16(%rbp), %rsi\n"      \
  "mov -24(%rbp), %rdx\n"      \
  "mov -32(%rbp), %rcx\n"      \
  "mov -40(%rbp), %r8\n"       \
  "mov -48(%rbp), %r9\n"       \
  "mov -56(%rbp), %rax\n"      \
  "movups -80(%rbp), %xmm0\n"  \
  "movups -96(%rbp), %xmm1\n"  \
  "movups -112(%rbp), %xmm2\n" \
  "movups -128(%rbp), %xmm3\n" \
  "movups -144(%rbp), %xmm4\n" \
  "movups -160(%rbp), %xmm5\n" \
  "movups -176(%rbp), %xmm6\n" \
  "movups -192(%rbp), %xmm7\n" \
  "leave\n"

// A message to nil returns zero.
asm(".type objc_msgSend, @function\n.globl objc_msgSend\nobjc_msgSend:\n"
    "test %rdi, %rdi\n je 1f\n" SAVE
    "mov %rdi, %rdx\n mov (%rdi), %rdi\n call objcrt_lookup@PLT\n" RESTORE
    "jmp *%r11\n"
    "1: xor %eax, %eax\n xor %edx, %edx\n xorps %xmm0, %xmm0\n xorps %xmm1, %xmm1\n ret\n");

// Structures in memory: rdi holds their address, the receiver comes second.
asm(".type objc_msgSend_stret, @function\n.globl objc_msgSend_stret\nobjc_msgSend_stret:\n"
    "test %rsi, %rsi\n je 1f\n" SAVE
    "mov (%rsi), %rdi\n mov %rsi, %rcx\n mov %rdx, %rsi\n mov %rcx, %rdx\n"
    "call objcrt_lookup@PLT\n" RESTORE
    "jmp *%r11\n"
    "1: mov %rdi, %rax\n ret\n");

// The first argument points to {receiver, class whose superclass answers}.
asm(".type objc_msgSendSuper2, @function\n.globl objc_msgSendSuper2\nobjc_msgSendSuper2:\n" SAVE
    "mov 8(%rdi), %rdi\n call objcrt_lookup_super@PLT\n" RESTORE "mov (%rdi), %rdi\n jmp *%r11\n");

asm(".type objc_msgSendSuper2_stret, @function\n.globl objc_msgSendSuper2_stret\n"
    "objc_msgSendSuper2_stret:\n" SAVE
    "mov 8(%rsi), %rdi\n mov %rdx, %rsi\n call objcrt_lookup_super@PLT\n" RESTORE
    "mov (%rsi), %rsi\n jmp *%r11\n");
